//! rdkafka for Rust (librdkafka). What drivers/python/contract.py says of orders and events holds here too.

use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, CommitMode, Consumer, ConsumerContext, Rebalance};
use rdkafka::producer::{BaseProducer, Producer};
use rdkafka::util::Timeout;
use serde_json::{json, Value};
use std::io::BufRead;
use std::process::exit;
use std::sync::mpsc::{channel, Receiver};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

const POLL: Duration = Duration::from_millis(100);
const COMMIT_EVERY: Duration = Duration::from_secs(1);
const LONGEST: Timeout = Timeout::After(Duration::from_secs(5));

type Outcome = Result<(), rdkafka::error::KafkaError>;

fn tell(event: Value) {
    println!("{event}");
}

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

fn text<'a>(settings: &'a Value, name: &str) -> &'a str {
    settings[name].as_str().unwrap()
}

fn base(settings: &Value) -> ClientConfig {
    let mut config = ClientConfig::new();
    config.set("bootstrap.servers", text(settings, "bootstrap"));
    config.set("client.id", text(settings, "client_id"));
    config.set("log_level", "0");
    config
}

impl Member {
    fn join(settings: Value) -> Result<Self, rdkafka::error::KafkaError> {
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
        let member = Member { consumer: config.create_with_context(Context)?, producer: None, settings };
        member.subscribe(&member.settings["topics"])?;
        Ok(member)
    }

    fn subscribe(&self, topics: &Value) -> Outcome {
        let names: Vec<&str> = topics.as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
        self.consumer.subscribe(&names)
    }

    fn commit(&mut self, how: &str) -> Outcome {
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

    fn commit_in_transaction(&mut self) -> Outcome {
        if self.producer.is_none() {
            let mut config = base(&self.settings);
            config.set("transactional.id", text(&self.settings, "client_id"));
            let producer: BaseProducer = config.create()?;
            producer.init_transactions(LONGEST)?;
            self.producer = Some(producer);
        }
        let producer = self.producer.as_ref().unwrap();
        let positions = self.consumer.position()?;
        producer.begin_transaction()?;
        producer.send_offsets_to_transaction(&positions, &self.consumer.group_metadata().unwrap(), LONGEST)?;
        producer.commit_transaction(LONGEST)
    }
}

fn orders() -> Receiver<Value> {
    let (sender, receiver) = channel();
    spawn(move || {
        for line in std::io::stdin().lock().lines() {
            sender.send(serde_json::from_str(&line.unwrap()).unwrap()).unwrap();
        }
        exit(1); // the parent is gone
    });
    receiver
}

fn main() {
    let orders = orders();
    tell(json!({"event": "started"}));
    let mut member: Option<Member> = None;
    let (mut how, mut joined, mut committed) = ("auto".to_string(), false, Instant::now());
    loop {
        let order = if joined { orders.try_recv().unwrap_or(json!({"do": "poll"})) } else { orders.recv().unwrap() };
        let what = order["do"].as_str().unwrap().to_string();
        let outcome = match (what.as_str(), member.as_mut()) {
            ("join", _) => {
                how = text(&order, "commits").to_string();
                joined = true;
                Member::join(order).map(|made| member = Some(made))
            }
            ("poll", Some(member)) => {
                let polled = match member.consumer.poll(POLL) {
                    Some(Err(error)) => Err(error),
                    _ => Ok(()),
                };
                if how != "auto" && committed.elapsed() >= COMMIT_EVERY {
                    committed = Instant::now();
                    polled.and(member.commit(&how))
                } else {
                    polled
                }
            }
            ("subscribe", Some(member)) => {
                joined = true;
                member.subscribe(&order["topics"])
            }
            ("block", _) => {
                sleep(Duration::from_millis(order["ms"].as_u64().unwrap()));
                Ok(())
            }
            ("commit", Some(member)) => {
                let done = member.commit("sync");
                tell(json!({"event": "committed"}));
                done
            }
            ("leave", Some(member)) => {
                joined = false;
                member.consumer.unsubscribe();
                tell(json!({"event": "left"}));
                Ok(())
            }
            ("close", _) => {
                drop(member.take()); // leaves the group
                tell(json!({"event": "closed"}));
                exit(0);
            }
            _ => {
                sleep(POLL);
                Ok(())
            }
        };
        if let Err(error) = outcome {
            tell(json!({"event": "failed", "error": error.to_string()}));
        }
    }
}
