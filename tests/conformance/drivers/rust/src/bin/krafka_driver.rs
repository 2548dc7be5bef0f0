//! krafka, a client in Rust alone.

use conformance::{duration, listed, run, tell, text, Driver, LONGEST, POLL};
use krafka::auth::AuthConfig;
use krafka::consumer::{
    AutoOffsetReset, Consumer, ConsumerRebalanceListener, GroupProtocol, PartitionAssignmentStrategy, TopicPartition,
};
use krafka::producer::{TopicPartitionOffset, TransactionalProducer};
use krafka::{Kafka, KrafkaError};
use serde_json::{json, Value};
use std::sync::Arc;
use std::time::Duration;
use tokio::runtime::Runtime;

struct Listener;

impl ConsumerRebalanceListener for Listener {
    async fn on_partitions_assigned(&self, given: &[TopicPartition]) {
        tell(json!({"event": "assigned", "partitions": given.len()}));
    }

    async fn on_partitions_revoked(&self, taken: &[TopicPartition]) {
        tell(json!({"event": "revoked", "partitions": taken.len()}));
    }
}

/// Its heartbeats run in the threads of the runtime, whatever this thread does.
struct Member {
    runtime: Runtime,
    kafka: Kafka,
    consumer: Arc<Consumer>,
    producer: Option<TransactionalProducer>,
    settings: Value,
}

async fn consumer(kafka: &Kafka, settings: &Value) -> Result<Consumer, KrafkaError> {
    let mut builder = kafka
        .consumer(text(settings, "group"))
        .session_timeout(duration(settings, "session_timeout_ms"))
        .heartbeat_interval(duration(settings, "heartbeat_interval_ms"))
        .max_poll_interval(duration(settings, "rebalance_timeout_ms"))
        .auto_offset_reset(AutoOffsetReset::Earliest)
        .enable_auto_commit(text(settings, "commits") == "auto")
        .auto_commit_interval(Duration::from_secs(1))
        .rebalance_listener(Listener);
    builder = if settings["protocol"] == "consumer" {
        builder.group_protocol(GroupProtocol::Consumer)
    } else {
        builder.partition_assignment_strategy(
            PartitionAssignmentStrategy::from_protocol_name(text(settings, "assignor")).unwrap(),
        )
    };
    if let Some(instance) = settings["instance_id"].as_str() {
        builder = builder.group_instance_id(instance);
    }
    builder.build().await
}

impl Member {
    async fn commit_in_transaction(
        kafka: &Kafka,
        consumer: &Consumer,
        producer: &mut Option<TransactionalProducer>,
        id: &str,
    ) -> Result<(), KrafkaError> {
        if producer.is_none() {
            *producer = Some(
                kafka.producer().delivery_timeout(LONGEST).transaction_timeout(LONGEST * 2).build_transactional(id).await?,
            );
        }
        let producer = producer.as_ref().unwrap();
        let mut offsets = Vec::new();
        for (topic, partitions) in consumer.assignment().await {
            for partition in partitions {
                if let Some(offset) = consumer.position(&topic, partition).await {
                    offsets.push(TopicPartitionOffset::new(topic.as_str(), partition, offset));
                }
            }
        }
        let Some(group) = consumer.group_metadata().await else {
            return Ok(()); // in the middle of a rebalance
        };
        producer.begin()?;
        producer.send_offsets(&offsets, &group).await?;
        producer.commit().await
    }
}

impl Driver for Member {
    type Error = KrafkaError;

    fn join(settings: Value) -> Result<Self, KrafkaError> {
        let runtime = Runtime::new().unwrap();
        let mut builder = Kafka::builder(text(&settings, "bootstrap"))
            .client_id(text(&settings, "client_id"))
            .metadata_max_age(Duration::from_secs(2));
        if let Some(user) = settings["user"].as_str() {
            builder = builder.security(AuthConfig::sasl_scram_sha512(user, text(&settings, "password")));
        }
        let kafka = runtime.block_on(builder.connect())?;
        let consumer = Arc::new(runtime.block_on(consumer(&kafka, &settings))?);
        let mut member = Member { runtime, kafka, consumer, producer: None, settings: settings.clone() };
        member.subscribe(&listed(&settings, "topics"))?;
        Ok(member)
    }

    fn subscribe(&mut self, topics: &[&str]) -> Result<(), KrafkaError> {
        self.runtime.block_on(self.consumer.subscribe(topics))
    }

    fn poll(&mut self) -> Result<(), KrafkaError> {
        self.runtime.block_on(self.consumer.poll(POLL)).map(drop)
    }

    fn commit(&mut self, how: &str) -> Result<(), KrafkaError> {
        match how {
            "async" => {
                let consumer = self.consumer.clone();
                self.runtime.spawn(async move {
                    if let Err(error) = consumer.commit().await {
                        tell(json!({"event": "failed", "error": error.to_string()}));
                    }
                });
                Ok(())
            }
            "transaction" => {
                let done = self.runtime.block_on(Self::commit_in_transaction(
                    &self.kafka,
                    &self.consumer,
                    &mut self.producer,
                    text(&self.settings, "client_id"),
                ));
                if done.is_err() {
                    self.producer = None;
                }
                done
            }
            _ => self.runtime.block_on(self.consumer.commit()),
        }
    }

    fn leave(&mut self) -> Result<(), KrafkaError> {
        self.runtime.block_on(self.consumer.unsubscribe())
    }

    fn close(self) -> Result<(), KrafkaError> {
        self.runtime.block_on(self.consumer.close())
    }
}

fn main() {
    run::<Member>();
}
