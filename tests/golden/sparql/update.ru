PREFIX : <http://example.org/>
INSERT DATA { :a :p _:new GRAPH :g { :a :p 1, 2 } } ;
DELETE DATA { :a :q 1 . GRAPH :g { :a :q 2 } } ;
DELETE { ?x :old ?y } INSERT { ?x :new ?y ; :seen [] } WHERE { ?x :old ?y } ;
DELETE WHERE { ?x :gone true . GRAPH :g { ?x :p ?y } } ;
WITH :g DELETE { ?x :p ?y } INSERT { GRAPH ?y { ?x :p ?y } GRAPH :h { ?x :q ?y } } WHERE { ?x :p ?y } ;
WITH :g INSERT { ?x :p ?y } USING :h USING NAMED :i WHERE { ?x :q ?y GRAPH ?g { ?x :r ?y } }
