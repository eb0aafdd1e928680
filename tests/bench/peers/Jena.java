// Apache Jena's rule engine (RETE) and query engine (ARQ) on a workload. It loads, warms up, says `ready`, waits for a
// line, works, says how many nanoseconds that took (of time, of CPU), and writes the facts (and latencies) to files.
//
//     java Jena rete|arq window|fixpoint|events PROGRAM STREAM STATIC WINDOW SLIDE WARM OUT
//
// WARM: seconds of work before what is measured; it is one run at least.

import com.hp.hpl.jena.datatypes.TypeMapper;
import com.hp.hpl.jena.graph.Factory;
import com.hp.hpl.jena.graph.Graph;
import com.hp.hpl.jena.graph.Node;
import com.hp.hpl.jena.graph.Triple;
import com.hp.hpl.jena.query.Query;
import com.hp.hpl.jena.query.QueryExecution;
import com.hp.hpl.jena.query.QueryExecutionFactory;
import com.hp.hpl.jena.query.QueryFactory;
import com.hp.hpl.jena.rdf.model.Model;
import com.hp.hpl.jena.rdf.model.ModelFactory;
import com.hp.hpl.jena.reasoner.InfGraph;
import com.hp.hpl.jena.reasoner.rulesys.GenericRuleReasoner;
import com.hp.hpl.jena.reasoner.rulesys.Rule;
import java.io.File;
import java.io.IOException;
import java.io.PrintWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;

public class Jena {
    static boolean rete;
    static String how;
    static String program;
    static List<Triple> stream, fixed;
    static int window, slide;
    static List<Triple> found;
    static List<Long> latencies;

    public static void main(String[] given) throws IOException {
        rete = given[0].equals("rete");
        how = given[1];
        program = Files.readString(Path.of(given[2]));
        stream = load(given[3]);
        fixed = load(given[4]);
        window = Integer.parseInt(given[5]);
        slide = Integer.parseInt(given[6]);
        long start = System.nanoTime(), warm = (long) (1e9 * Double.parseDouble(given[7]));
        do {
            work(prepared());
        } while (System.nanoTime() - start < warm);
        Object ready = prepared();
        System.gc();
        System.out.println("ready");
        System.in.read();
        long wall = System.nanoTime(), cpu = used();
        work(ready);
        System.out.println((System.nanoTime() - wall) + " " + (used() - cpu));
        write(given[8]);
    }

    /** Nanoseconds of CPU used by all threads: the JVM's own clock of it goes by steps of 10 ms. */
    static long used() throws IOException {
        long sum = 0;
        for (File thread : new File("/proc/self/task").listFiles()) {
            sum += Long.parseLong(Files.readString(thread.toPath().resolve("schedstat")).split(" ")[0]);
        }
        return sum;
    }

    /** What can be made ready before the clock starts: the parsed program, and a graph with what holds always. */
    static Object prepared() {
        found = new ArrayList<>();
        latencies = new ArrayList<>();
        if (!rete) {
            return QueryFactory.create(program);
        }
        GenericRuleReasoner reasoner = new GenericRuleReasoner(Rule.parseRules(Rule.rulesParserFromReader(
            new java.io.BufferedReader(new java.io.StringReader(program)))));
        reasoner.setMode(GenericRuleReasoner.FORWARD_RETE);
        Graph graph = Factory.createGraphMem();
        for (Triple triple : fixed) graph.add(triple);
        if (how.equals("fixpoint")) {
            for (Triple triple : stream) graph.add(triple);
        }
        return reasoner.bind(graph);
    }

    static void work(Object ready) {
        switch (how) {
            case "fixpoint" -> fixpoint((InfGraph) ready);
            case "events" -> events((InfGraph) ready);
            default -> {
                if (rete) incremental((InfGraph) ready);
                else again((Query) ready);
            }
        }
    }

    static void fixpoint(InfGraph inf) {
        inf.prepare();
        inf.getDeductionsGraph().find(Node.ANY, Node.ANY, Node.ANY).forEachRemaining(found::add);
    }

    static void listen(InfGraph inf, java.util.function.Consumer<Triple> take) {
        inf.prepare();
        inf.getDeductionsGraph().getEventManager().register(new com.hp.hpl.jena.graph.GraphListener() {
            public void notifyAddTriple(Graph g, Triple t) { take.accept(t); }
            public void notifyAddArray(Graph g, Triple[] all) { for (Triple t : all) take.accept(t); }
            public void notifyAddList(Graph g, List<Triple> all) { all.forEach(take); }
            public void notifyAddIterator(Graph g, Iterator<Triple> all) { all.forEachRemaining(take); }
            public void notifyAddGraph(Graph g, Graph added) { }
            public void notifyDeleteTriple(Graph g, Triple t) { }
            public void notifyDeleteList(Graph g, List<Triple> all) { }
            public void notifyDeleteArray(Graph g, Triple[] all) { }
            public void notifyDeleteIterator(Graph g, Iterator<Triple> all) { }
            public void notifyDeleteGraph(Graph g, Graph deleted) { }
            public void notifyEvent(Graph g, Object value) { }
        });
    }

    /** In with a triple, out with the one that leaves the window. */
    static void incremental(InfGraph inf) {
        listen(inf, found::add);
        for (int i = 0; i < stream.size(); i++) {
            inf.add(stream.get(i));
            if (i >= window) inf.delete(stream.get(i - window));
        }
    }

    /** The same; an event is 8 triples, and what counts is how long its output takes. */
    static void events(InfGraph inf) {
        long[] began = {0};
        listen(inf, triple -> {
            latencies.add(System.nanoTime() - began[0]);
            found.add(triple);
        });
        for (int i = 0; i < stream.size(); i++) {
            if (i % 8 == 0) began[0] = System.nanoTime();
            inf.add(stream.get(i));
            if (i >= window) inf.delete(stream.get(i - window));
        }
    }

    /** Whenever a slide has come, the query is evaluated over the window. */
    static void again(Query query) {
        Graph graph = Factory.createGraphMem();
        for (Triple triple : fixed) graph.add(triple);
        Model model = ModelFactory.createModelForGraph(graph);
        for (int end = Math.min(slide, stream.size()), begin = 0; begin < end; ) {
            for (int i = begin; i < end; i++) graph.add(stream.get(i));
            for (int i = Math.max(0, begin - window); i < end - window; i++) graph.delete(stream.get(i));
            QueryExecution execution = QueryExecutionFactory.create(query, model);
            execution.execConstructTriples().forEachRemaining(found::add);
            execution.close();
            begin = end;
            end = Math.min(end + slide, stream.size());
        }
    }

    static List<Triple> load(String file) throws IOException {
        List<Triple> triples = new ArrayList<>();
        for (String line : Files.readAllLines(Path.of(file))) {
            String[] parts = line.split(" ", 3);
            triples.add(Triple.create(node(parts[0]), node(parts[1]), node(parts[2].substring(0, parts[2].length() - 2))));
        }
        return triples;
    }

    /** A term of canonical N-Triples without escapes and language tags. */
    static Node node(String text) {
        if (text.startsWith("<")) return Node.createURI(text.substring(1, text.length() - 1));
        int close = text.lastIndexOf('"');
        String lexical = text.substring(1, close);
        if (close == text.length() - 1) return Node.createLiteral(lexical);
        String type = text.substring(close + 4, text.length() - 1);
        return Node.createLiteral(lexical, null, TypeMapper.getInstance().getSafeTypeByName(type));
    }

    static String text(Node node) {
        if (node.isURI()) return "<" + node.getURI() + ">";
        String type = node.getLiteralDatatypeURI();
        return "\"" + node.getLiteralLexicalForm() + "\"" + (type == null ? "" : "^^<" + type + ">");
    }

    static void write(String file) throws IOException {
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(file)))) {
            for (Triple t : found) {
                out.println(text(t.getSubject()) + " " + text(t.getPredicate()) + " " + text(t.getObject()) + " .");
            }
        }
        try (PrintWriter out = new PrintWriter(Files.newBufferedWriter(Path.of(file + ".latencies")))) {
            for (long nanoseconds : latencies) out.println(nanoseconds);
        }
    }
}
