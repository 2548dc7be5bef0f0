import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Apache Kafka's own consumer. */
final class ClientsDriver extends Contract {
    private static final Map<String, String> ASSIGNORS = Map.of(
        "range", "org.apache.kafka.clients.consumer.RangeAssignor",
        "roundrobin", "org.apache.kafka.clients.consumer.RoundRobinAssignor",
        "cooperative-sticky", "org.apache.kafka.clients.consumer.CooperativeStickyAssignor");
    private KafkaConsumer<byte[], byte[]> consumer;
    private KafkaProducer<byte[], byte[]> producer;
    private JsonNode settings;

    public static void main(String[] words) throws InterruptedException {
        new ClientsDriver().run();
    }

    @Override
    void join(JsonNode order) {
        settings = order;
        Properties options = common();
        options.put("group.id", order.get("group").asText());
        if (order.path("protocol").asText().equals("consumer")) {
            options.put("group.protocol", "consumer");
        } else {
            options.put("session.timeout.ms", order.get("session_timeout_ms").asText());
            options.put("heartbeat.interval.ms", order.get("heartbeat_interval_ms").asText());
            options.put("partition.assignment.strategy", ASSIGNORS.get(order.get("assignor").asText()));
        }
        options.put("max.poll.interval.ms", order.get("rebalance_timeout_ms").asText());
        options.put("auto.offset.reset", "earliest");
        options.put("enable.auto.commit", String.valueOf(order.get("commits").asText().equals("auto")));
        options.put("auto.commit.interval.ms", "1000");
        options.put("metadata.max.age.ms", "2000");
        if (order.hasNonNull("idle_ms")) {
            options.put("connections.max.idle.ms", order.get("idle_ms").asText());
        }
        if (!order.get("instance_id").isNull()) {
            options.put("group.instance.id", order.get("instance_id").asText());
        }
        consumer = new KafkaConsumer<>(options, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        subscribe(listed(order.get("topics")));
    }

    private Properties common() {
        Properties options = new Properties();
        options.put("bootstrap.servers", settings.get("bootstrap").asText());
        options.put("client.id", settings.get("client_id").asText());
        if (settings.hasNonNull("user")) {
            options.put("security.protocol", settings.hasNonNull("ca") ? "SASL_SSL" : "SASL_PLAINTEXT");
            if (settings.hasNonNull("ca")) {
                options.put("ssl.truststore.type", "PEM");
                options.put("ssl.truststore.location", settings.get("ca").asText());
            }
            options.put("sasl.mechanism", "SCRAM-SHA-512");
            options.put("sasl.jaas.config", String.format(
                "org.apache.kafka.common.security.scram.ScramLoginModule required username=\"%s\" password=\"%s\";",
                settings.get("user").asText(), settings.get("password").asText()));
        }
        return options;
    }

    @Override
    void subscribe(List<String> topics) {
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                tell("revoked", "partitions", revoked.size());
            }

            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                tell("assigned", "partitions", assigned.size());
            }
        };
        if (!topics.get(0).startsWith("^")) {
            consumer.subscribe(topics, listener);
        } else if (settings.path("protocol").asText().equals("consumer")) {
            consumer.subscribe(new SubscriptionPattern(topics.get(0)), listener);
        } else {
            consumer.subscribe(Pattern.compile(topics.get(0)), listener);
        }
    }

    @Override
    void poll() {
        consumer.poll(Duration.ofMillis(POLL_MS));
    }

    @Override
    void block(long milliseconds) throws InterruptedException {
        Thread.sleep(milliseconds);
    }

    @Override
    void commit(String how) {
        switch (how) {
            case "sync" -> consumer.commitSync(Duration.ofSeconds(3));
            case "async" -> consumer.commitAsync();
            default -> commitInTransaction();
        }
    }

    private void commitInTransaction() {
        try {
            if (producer == null) {
                Properties options = common();
                options.put("transactional.id", settings.get("client_id").asText());
                options.put("max.block.ms", "5000");
                producer = new KafkaProducer<>(options, new ByteArraySerializer(), new ByteArraySerializer());
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
            producer.close(Duration.ofSeconds(1));
            producer = null;
            throw error;
        }
    }

    @Override
    void leave() {
        consumer.unsubscribe();
    }

    @Override
    void close() {
        consumer.close(Duration.ofSeconds(5));
    }
}
