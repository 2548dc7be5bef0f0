import java.io.IOException;
import java.nio.file.Files;
import java.time.Duration;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;

/** A member of a Streams group (KIP-1071): one thread that counts records by value, which takes a repartition topic and a changelog. */
public final class LabStreams {
    public static void main(String[] words) throws IOException, InterruptedException {
        Map<String, String> options = new HashMap<>();
        for (String word : words) {
            int equals = word.indexOf('=');
            options.put(word.substring(0, equals), word.substring(equals + 1));
        }
        CountDownLatch stop = new CountDownLatch(1);
        sun.misc.Signal.handle(new sun.misc.Signal("TERM"), signal -> stop.countDown());
        KafkaStreams streams = new KafkaStreams(counting(options).build(), settings(options));
        streams.setStateListener((now, before) -> {
            if (now == KafkaStreams.State.RUNNING) {
                tell("assigned", ", \"partitions\": 0");
            }
        });
        streams.setUncaughtExceptionHandler(error -> {
            tell("failed", ", \"error\": \"" + error.getClass().getSimpleName() + "\"");
            return StreamThreadExceptionResponse.REPLACE_THREAD;
        });
        tell("started", "");
        streams.start();
        stop.await();
        streams.close(new KafkaStreams.CloseOptions().leaveGroup(true).timeout(Duration.ofSeconds(10)));
        tell("stopped", "");
        System.exit(0);
    }

    private static StreamsBuilder counting(Map<String, String> options) {
        StreamsBuilder builder = new StreamsBuilder();
        builder.<byte[], byte[]>stream(Arrays.asList(options.get("topics").split(","))).selectKey((key, value) -> value).groupByKey().count();
        return builder;
    }

    private static Properties settings(Map<String, String> options) throws IOException {
        Properties settings = new Properties();
        settings.put("application.id", options.get("group"));
        settings.put("client.id", options.get("client_id"));
        settings.put("bootstrap.servers", options.get("bootstrap"));
        settings.put("group.protocol", "streams");
        settings.put("state.dir", Files.createTempDirectory("lab-streams-").toString());
        settings.put("default.key.serde", Serdes.ByteArraySerde.class);
        settings.put("default.value.serde", Serdes.ByteArraySerde.class);
        settings.put("commit.interval.ms", "1000");
        settings.put("metadata.max.age.ms", "5000");
        settings.put("auto.offset.reset", "earliest");
        return settings;
    }

    private static void tell(String event, String details) {
        System.out.println("{\"at_us\": " + System.currentTimeMillis() * 1000 + ", \"event\": \"" + event + "\"" + details + "}");
        System.out.flush();
    }
}
