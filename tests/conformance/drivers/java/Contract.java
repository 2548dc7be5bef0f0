import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;

/** What drivers/python/contract.py says of orders and events. */
abstract class Contract {
    static final long POLL_MS = 100;
    static final long COMMIT_MS = 1000;
    private static final ObjectMapper JSON = new ObjectMapper();
    private final LinkedBlockingQueue<JsonNode> orders = new LinkedBlockingQueue<>();

    abstract void join(JsonNode settings);
    abstract void subscribe(List<String> topics);
    abstract void poll();
    abstract void commit(String how);
    abstract void leave();
    abstract void close();
    abstract void block(long milliseconds) throws InterruptedException;

    static synchronized void tell(String event, Object... details) {
        var line = JSON.createObjectNode().put("event", event);
        for (int at = 0; at < details.length; at += 2) {
            line.set((String) details[at], JSON.valueToTree(details[at + 1]));
        }
        System.out.println(line);
        System.out.flush();
    }

    static List<String> listed(JsonNode array) {
        List<String> found = new ArrayList<>();
        array.forEach(one -> found.add(one.asText()));
        return found;
    }

    private void read() {
        try (var lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
            for (String line; (line = lines.readLine()) != null; ) {
                orders.add(JSON.readTree(line));
            }
        } catch (java.io.IOException error) {
            tell("failed", "error", error.toString());
        }
        Runtime.getRuntime().halt(1);
    }

    void run() throws InterruptedException {
        Thread reader = new Thread(this::read);
        reader.setDaemon(true);
        reader.start();
        tell("started");
        String how = "auto";
        boolean joined = false;
        long committed = System.nanoTime();
        while (true) {
            JsonNode order = joined ? orders.poll() : orders.take();
            String what = order == null ? "poll" : order.get("do").asText();
            try {
                switch (what) {
                    case "poll" -> {
                        poll();
                        if (!how.equals("auto") && System.nanoTime() - committed >= COMMIT_MS * 1_000_000) {
                            committed = System.nanoTime();
                            commit(how);
                        }
                    }
                    case "join" -> {
                        how = order.get("commits").asText();
                        join(order);
                        joined = true;
                    }
                    case "subscribe" -> {
                        subscribe(listed(order.get("topics")));
                        joined = true;
                    }
                    case "block" -> block(order.get("ms").asLong());
                    case "commit" -> {
                        commit("sync");
                        tell("committed");
                    }
                    case "leave" -> {
                        leave();
                        joined = false;
                        tell("left");
                    }
                    case "close" -> {
                        close();
                        tell("closed");
                        Runtime.getRuntime().halt(0);
                    }
                    default -> throw new IllegalArgumentException(what);
                }
            } catch (RuntimeException error) {
                tell("failed", "error", error.toString());
            }
        }
    }
}
