PREFIX : <http://example.org/>
INSERT DATA { :a :p _:new } ;
DELETE DATA { :a :q 1 . :a :q 2 } ;
DELETE { ?x :old ?y } INSERT { ?x :new ?y ; :seen [] } WHERE { ?x :old ?y } ;
DELETE WHERE { ?x :gone true }
