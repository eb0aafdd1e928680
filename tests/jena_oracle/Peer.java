import java.io.*;
import java.nio.charset.StandardCharsets;
import java.util.*;
import org.apache.jena.atlas.io.IndentedLineBuffer;
import org.apache.jena.graph.Node;
import org.apache.jena.query.*;
import org.apache.jena.rdf.model.*;
import org.apache.jena.reasoner.rulesys.*;
import org.apache.jena.riot.*;
import org.apache.jena.riot.out.NodeFormatterNT;

/** Answers requests of tests: three texts that end with a line of a dot (what is asked, a program, data in N-Triples). */
public class Peer {
    static final BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));

    static String block() throws IOException {
        StringBuilder text = new StringBuilder();
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            if (line.equals(".")) return text.toString();
            text.append(line).append('\n');
        }
        return null;
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream out = new PrintStream(System.out, false, "UTF-8");
        for (String what = block(); what != null; what = block()) {
            String program = block(), facts = block();
            try {
                out.print(answer(what.trim(), program, facts));
            } catch (Exception error) {
                out.println("error: " + String.valueOf(error.getMessage()).replace('\n', ' '));
            }
            out.println(".");
            out.flush();
        }
    }

    static String answer(String what, String program, String facts) {
        Model data = ModelFactory.createDefaultModel();
        RDFParser.fromString(facts).lang(Lang.NTRIPLES).parse(data);
        return what.equals("rules") ? derived(program, data) : solutions(program, data);
    }

    static String derived(String program, Model data) {
        GenericRuleReasoner reasoner = new GenericRuleReasoner(
            Rule.parseRules(Rule.rulesParserFromReader(new BufferedReader(new StringReader(program)))));
        reasoner.setMode(GenericRuleReasoner.FORWARD);
        InfModel model = ModelFactory.createInfModel(reasoner, data);
        StringBuilder lines = new StringBuilder();
        model.getGraph().find().forEachRemaining(fact -> lines
            .append(text(fact.getSubject())).append('\t')
            .append(text(fact.getPredicate())).append('\t')
            .append(text(fact.getObject())).append('\n'));
        return lines.toString();
    }

    static String text(Node node) {
        IndentedLineBuffer buffer = new IndentedLineBuffer();
        new NodeFormatterNT().format(buffer, node);
        return buffer.asString();
    }

    static String solutions(String text, Model data) {
        StringBuilder lines = new StringBuilder();
        Query query = QueryFactory.create(text);
        try (QueryExecution run = QueryExecutionFactory.create(query, data)) {
            run.getContext().set(ARQ.optimization, false); // its rewriting of ?x = ?y forgets UNDEF of VALUES
            if (query.isAskType()) return run.execAsk() + "\n";
            ResultSet rows = run.execSelect();
            lines.append(String.join("\t", rows.getResultVars())).append('\n');
            while (rows.hasNext()) {
                QuerySolution row = rows.next();
                List<String> cells = new ArrayList<>();
                for (String name : rows.getResultVars()) {
                    RDFNode node = row.get(name);
                    cells.add(node == null ? "" : text(node.asNode()));
                }
                lines.append(String.join("\t", cells)).append('\n');
            }
        }
        return lines.toString();
    }
}
