//! rdkafka for Rust (librdkafka).

use conformance::{listed, run, tell, text, Driver, LONGEST, POLL};
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::error::KafkaError;
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::util::Timeout;
use serde_json::{json, Value};

struct Context;

impl ClientContext for Context {}

impl ConsumerContext for Context {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Revoke(taken) = rebalance {
            tell(json!({"event": "revoked", "partitions": taken.count()}));
        }
    }

    fn post_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        if let Rebalance::Assign(given) = rebalance {
            tell(json!({"event": "assigned", "partitions": given.count()}));
        }
    }
}

struct Member {
    consumer: BaseConsumer<Context>,
    producer: Option<BaseProducer>,
    settings: Value,
}

fn base(settings: &Value) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", text(settings, "bootstrap"));
    config.set("client.id", text(settings, "client_id"));
    config.set("log_level", "0");
    config
}

impl Member {
    fn commit_in_transaction(&mut self) -> Result<(), KafkaError> {
        let longest = Timeout::After(LONGEST);
        if self.producer.is_none() {
            let mut config = base(&self.settings);
            config.set("transactional.id", text(&self.settings, "client_id"));
            let producer: BaseProducer = config.create()?;
            producer.init_transactions(longest)?;
            self.producer = Some(producer);
        }
        let producer = self.producer.as_ref().unwrap();
        let positions = self.consumer.position()?;
        producer.begin_transaction()?;
        producer.send_offsets_to_transaction(&positions, &self.consumer.group_metadata().unwrap(), longest)?;
        producer.commit_transaction(longest)
    }
}

impl Driver for Member {
    type Error = KafkaError;

    fn join(settings: Value) -> Result<Self, KafkaError> {
        let mut config = base(&settings);
        config.set("group.id", text(&settings, "group"));
        config.set("session.timeout.ms", settings["session_timeout_ms"].to_string());
        config.set("heartbeat.interval.ms", settings["heartbeat_interval_ms"].to_string());
        config.set("max.poll.interval.ms", settings["rebalance_timeout_ms"].to_string());
        config.set("partition.assignment.strategy", text(&settings, "assignor"));
        config.set("auto.offset.reset", "earliest");
        config.set("enable.auto.commit", (text(&settings, "commits") == "auto").to_string());
        config.set("auto.commit.interval.ms", "1000");
        config.set("topic.metadata.refresh.interval.ms", "2000");
        config.set("reconnect.backoff.max.ms", "1000");
        if let Some(instance) = settings["instance_id"].as_str() {
            config.set("group.instance.id", instance);
        }
        let mut member = Member { consumer: config.create_with_context(Context)?, producer: None, settings: settings.clone() };
        member.subscribe(&listed(&settings, "topics"))?;
        Ok(member)
    }

    fn subscribe(&mut self, topics: &[&str]) -> Result<(), KafkaError> {
        self.consumer.subscribe(topics)
    }

    fn poll(&mut self) -> Result<(), KafkaError> {
        self.consumer.poll(POLL).map_or(Ok(()), |polled| polled.map(drop))
    }

    fn commit(&mut self, how: &str) -> Result<(), KafkaError> {
        match how {
            "async" => self.consumer.commit_consumer_state(CommitMode::Async),
            "transaction" => {
                let done = self.commit_in_transaction();
                if done.is_err() {
                    self.producer = None;
                }
                done
            }
            _ => self.consumer.commit_consumer_state(CommitMode::Sync),
        }
    }

    fn leave(&mut self) -> Result<(), KafkaError> {
        self.consumer.unsubscribe();
        Ok(())
    }

    fn close(self) -> Result<(), KafkaError> {
        drop(self); // leaves the group
        Ok(())
    }
}

fn main() {
    run::<Member>();
}
