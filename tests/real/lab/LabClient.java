import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The Java consumer of the laboratory, or a share consumer: what client.py says of its consumers holds here too. */
public final class LabClient {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");

    private final Map<String, String> options = new HashMap<>();
    private final AtomicInteger switches = new AtomicInteger();
    private volatile boolean stop;
    private KafkaProducer<byte[], byte[]> producer;

    public static void main(String[] words) {
        LabClient client = new LabClient();
        for (String word : words) {
            int equals = word.indexOf('=');
            client.options.put(word.substring(0, equals), word.substring(equals + 1));
        }
        sun.misc.Signal.handle(new sun.misc.Signal("TERM"), signal -> client.stop = true);
        sun.misc.Signal.handle(new sun.misc.Signal("HUP"), signal -> client.switches.incrementAndGet());
        if (client.options.get("protocol").equals("share")) {
            client.share();
        } else {
            client.run();
        }
        System.exit(0);
    }

    private static void tell(String event, String details) {
        System.out.println("{\"at_us\": " + System.currentTimeMillis() * 1000 + ", \"event\": \"" + event + "\"" + details + "}");
        System.out.flush();
    }

    private void run() {
        KafkaConsumer<byte[], byte[]> consumer = consumer();
        tell("started", "");
        subscribe(consumer, "topics");
        int switched = 0;
        for (int turn = 1; !stop; turn++) {
            try {
                consumer.poll(Duration.ofMillis(250));
                if (turn % 4 == 0) {
                    commit(consumer);
                }
            } catch (KafkaException error) {
                tell("failed", ", \"error\": \"" + error.getClass().getSimpleName() + "\"");
            }
            if (switched != switches.get()) {
                switched = switches.get();
                subscribe(consumer, switched % 2 == 1 ? "other_topics" : "topics");
            }
        }
        try {
            consumer.close(Duration.ofSeconds(5));
        } catch (KafkaException error) {
            tell("failed", ", \"error\": \"" + error.getClass().getSimpleName() + "\"");
        }
        tell("stopped", "");
    }

    private void share() {
        Properties settings = common();
        settings.put("group.id", options.get("group"));
        settings.put("metadata.max.age.ms", "5000");
        tell("started", "");
        try (KafkaShareConsumer<byte[], byte[]> consumer =
                new KafkaShareConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            subscribe(consumer, "topics");
            for (int switched = 0; !stop;) {
                try {
                    consumer.poll(Duration.ofMillis(250));
                } catch (KafkaException error) {
                    tell("failed", ", \"error\": \"" + error.getClass().getSimpleName() + "\"");
                }
                if (switched != switches.get()) {
                    switched = switches.get();
                    subscribe(consumer, switched % 2 == 1 ? "other_topics" : "topics");
                }
            }
        }
        tell("stopped", "");
    }

    private void subscribe(KafkaShareConsumer<byte[], byte[]> consumer, String which) {
        consumer.subscribe(Arrays.asList(options.get(which).split(",")));
    }

    private KafkaConsumer<byte[], byte[]> consumer() {
        Properties settings = common();
        List<String> assignors = new ArrayList<>();
        for (String name : options.get("assignors").split(",")) {
            assignors.add(ASSIGNORS.get(name));
        }
        settings.put("group.id", options.get("group"));
        if (options.get("protocol").equals("consumer")) {
            settings.put("group.protocol", "consumer");
        } else {
            settings.put("session.timeout.ms", options.get("session_timeout_ms"));
            settings.put("heartbeat.interval.ms", options.get("heartbeat_interval_ms"));
            settings.put("partition.assignment.strategy", assignors);
        }
        settings.put("max.poll.interval.ms", options.get("rebalance_timeout_ms"));
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", String.valueOf(options.get("commits").equals("auto")));
        settings.put("auto.commit.interval.ms", "1000");
        settings.put("metadata.max.age.ms", "5000");
        if (options.containsKey("instance_id")) {
            settings.put("group.instance.id", options.get("instance_id"));
        }
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private Properties common() {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", options.get("bootstrap"));
        settings.put("client.id", options.get("client_id"));
        options.forEach((name, value) -> {
            if (name.startsWith("kafka.")) {
                settings.put(name.substring("kafka.".length()), value);
            }
        });
        return settings;
    }

    private void subscribe(KafkaConsumer<byte[], byte[]> consumer, String which) {
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                try {
                    Thread.sleep(Long.parseLong(options.get("revoke_ms")));
                } catch (InterruptedException error) {
                    Thread.currentThread().interrupt();
                }
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                tell("assigned", ", \"partitions\": " + assigned.size());
            }
        };
        if (options.get(which).startsWith("^")) {
            consumer.subscribe(new SubscriptionPattern(options.get(which)), listener);
        } else {
            consumer.subscribe(Arrays.asList(options.get(which).split(",")), listener);
        }
    }

    private void commit(KafkaConsumer<byte[], byte[]> consumer) {
        switch (options.get("commits")) {
            case "sync" -> consumer.commitSync(Duration.ofSeconds(3));
            case "async" -> consumer.commitAsync();
            case "transaction" -> commitInTransaction(consumer);
            default -> { }
        }
    }

    private void commitInTransaction(KafkaConsumer<byte[], byte[]> consumer) {
        try {
            if (producer == null) {
                Properties settings = common();
                settings.put("transactional.id", options.get("client_id"));
                settings.put("max.block.ms", "5000");
                producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                producer.initTransactions();
            }
            Map<TopicPartition, OffsetAndMetadata> places = new HashMap<>();
            for (TopicPartition place : consumer.assignment()) {
                places.put(place, new OffsetAndMetadata(consumer.position(place, Duration.ofSeconds(1))));
            }
            producer.beginTransaction();
            producer.sendOffsetsToTransaction(places, consumer.groupMetadata());
            producer.commitTransaction();
        } catch (KafkaException error) {
            tell("failed", ", \"error\": \"" + error.getClass().getSimpleName() + "\"");
            producer.close(Duration.ofSeconds(1));
            producer = null;
        }
    }
}
