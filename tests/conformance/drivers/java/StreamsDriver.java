import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;

/** Kafka Streams with one thread and a topology without state; its assignor and its commits are its own. */
final class StreamsDriver extends Contract {
    private static final byte[] POISON = "poison".getBytes(StandardCharsets.UTF_8);
    private KafkaStreams streams;
    private JsonNode settings;
    private volatile long blockedUntil;

    public static void main(String[] words) throws InterruptedException {
        new StreamsDriver().run();
    }

    @Override
    void join(JsonNode order) {
        settings = order;
        subscribe(listed(order.get("topics")));
    }

    @Override
    void subscribe(List<String> topics) {
        Properties options = new Properties();
        options.put("application.id", settings.get("group").asText());
        options.put("client.id", settings.get("client_id").asText());
        options.put("bootstrap.servers", settings.get("bootstrap").asText());
        options.put("default.key.serde", Serdes.ByteArraySerde.class);
        options.put("default.value.serde", Serdes.ByteArraySerde.class);
        options.put("commit.interval.ms", "1000");
        if (settings.path("protocol").asText().equals("streams")) {
            options.put("group.protocol", "streams");
        } else {
            options.put("session.timeout.ms", settings.get("session_timeout_ms").asText());
            options.put("heartbeat.interval.ms", settings.get("heartbeat_interval_ms").asText());
        }
        options.put("max.poll.interval.ms", settings.get("rebalance_timeout_ms").asText());
        options.put("metadata.max.age.ms", "2000");
        options.put("auto.offset.reset", "earliest");
        if (settings.get("commits").asText().equals("transaction")) {
            options.put("processing.guarantee", "exactly_once_v2");
        }
        if (!settings.get("instance_id").isNull()) {
            options.put("group.instance.id", settings.get("instance_id").asText());
        }
        try {
            Path state = Files.createTempDirectory("conformance-streams-");
            state.toFile().deleteOnExit();
            options.put("state.dir", state.toString());
        } catch (java.io.IOException error) {
            throw new java.io.UncheckedIOException(error);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], byte[]>stream(topics).foreach((key, value) -> work(value));
        streams = new KafkaStreams(builder.build(), options);
        streams.setUncaughtExceptionHandler(error -> {
            tell("failed", "error", error.toString());
            return org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                tell("assigned", "partitions", 0);
            }
        });
        streams.start();
    }

    private void work(byte[] value) {
        if (Arrays.equals(value, POISON)) {
            throw new IllegalStateException("a record that cannot be processed");
        }
        long wait = blockedUntil - System.currentTimeMillis();
        if (wait > 0) {
            try {
                Thread.sleep(wait);
            } catch (InterruptedException error) {
                Thread.currentThread().interrupt();
            }
        }
    }

    @Override
    void poll() {
        try {
            Thread.sleep(POLL_MS);
        } catch (InterruptedException error) {
            Thread.currentThread().interrupt();
        }
    }

    @Override
    void block(long milliseconds) {
        blockedUntil = System.currentTimeMillis() + milliseconds;
    }

    @Override
    void commit(String how) {
    }

    @Override
    void leave() {
        streams.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(5)));
    }

    @Override
    void close() {
        streams.close(Duration.ofSeconds(10));
    }
}
