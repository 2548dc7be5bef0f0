//! What drivers/python/contract.py says of orders and events.

use serde_json::{json, Value};
use std::fmt::Display;
use std::io::BufRead;
use std::process::exit;
use std::sync::mpsc::{channel, Receiver};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

pub const POLL: Duration = Duration::from_millis(100);
pub const COMMIT_EVERY: Duration = Duration::from_secs(1);
pub const LONGEST: Duration = Duration::from_secs(5);

/// One library's consumer.
pub trait Driver: Sized {
    type Error: Display;

    fn join(settings: Value) -> Result<Self, Self::Error>;
    fn subscribe(&mut self, topics: &[&str]) -> Result<(), Self::Error>;
    fn poll(&mut self) -> Result<(), Self::Error>;
    fn commit(&mut self, how: &str) -> Result<(), Self::Error>;
    fn leave(&mut self) -> Result<(), Self::Error>;
    fn close(self) -> Result<(), Self::Error>;
}

pub fn tell(event: Value) {
    println!("{event}");
}

pub fn text<'a>(settings: &'a Value, name: &str) -> &'a str {
    settings[name].as_str().unwrap()
}

pub fn listed<'a>(settings: &'a Value, name: &str) -> Vec<&'a str> {
    settings[name].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect()
}

pub fn duration(settings: &Value, name: &str) -> Duration {
    Duration::from_millis(settings[name].as_u64().unwrap())
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

/// Does what is ordered, and polls and commits between.
pub fn run<D: Driver>() {
    let orders = orders();
    tell(json!({"event": "started"}));
    let mut member: Option<D> = None;
    let (mut how, mut joined, mut committed) = ("auto".to_string(), false, Instant::now());
    loop {
        let order = if joined { orders.try_recv().unwrap_or(json!({"do": "poll"})) } else { orders.recv().unwrap() };
        let what = text(&order, "do").to_string();
        let outcome = match (what.as_str(), member.as_mut()) {
            ("join", _) => {
                how = text(&order, "commits").to_string();
                joined = true;
                D::join(order).map(|made| member = Some(made))
            }
            ("poll", Some(member)) => {
                let polled = member.poll();
                if how != "auto" && committed.elapsed() >= COMMIT_EVERY {
                    committed = Instant::now();
                    polled.and(member.commit(&how))
                } else {
                    polled
                }
            }
            ("subscribe", Some(member)) => {
                joined = true;
                member.subscribe(&listed(&order, "topics"))
            }
            ("block", _) => {
                sleep(duration(&order, "ms"));
                Ok(())
            }
            ("commit", Some(member)) => {
                let done = member.commit("sync");
                tell(json!({"event": "committed"}));
                done
            }
            ("leave", Some(member)) => {
                joined = false;
                let done = member.leave();
                tell(json!({"event": "left"}));
                done
            }
            ("close", _) => {
                if let Some(Err(error)) = member.take().map(D::close) {
                    tell(json!({"event": "failed", "error": error.to_string()}));
                    exit(1);
                }
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
