import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Apache Kafka's own share consumer. It tells nobody what it is assigned; what it commits are acknowledgements. */
final class ShareDriver extends Contract {
    private KafkaShareConsumer<byte[], byte[]> consumer;

    public static void main(String[] words) throws InterruptedException {
        new ShareDriver().run();
    }

    @Override
    void join(JsonNode order) {
        Properties options = new Properties();
        options.put("bootstrap.servers", order.get("bootstrap").asText());
        options.put("client.id", order.get("client_id").asText());
        options.put("group.id", order.get("group").asText());
        options.put("max.poll.interval.ms", order.get("rebalance_timeout_ms").asText());
        options.put("metadata.max.age.ms", "2000");
        consumer = new KafkaShareConsumer<>(options, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        subscribe(listed(order.get("topics")));
    }

    @Override
    void subscribe(List<String> topics) {
        consumer.subscribe(topics);
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
        if (how.equals("sync")) {
            consumer.commitSync(Duration.ofSeconds(3));
        } else {
            consumer.commitAsync();
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
