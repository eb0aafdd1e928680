PREFIX : <http://example.org/>
INSERT DATA { ?s :p _:a } ;
DELETE DATA { :s :p _:a } ;
DELETE { ?s :p/:q ?o } WHERE { ?s :r ?o } ;
INSERT DATA { :s :p _:a } ;
INSERT DATA { :t :p _:a }
