//! What waits for the hosts of controllers to fetch it.
//!
//! Nothing here is durable: the coordinator asks again who has not answered, and
//! a controller that has missed a plan is told when it says so.

use crate::runtime::hosts::ToController;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// Messages that wait for one host; of more, the oldest are dropped.
const MOST: usize = 1 << 16;

/// All hosts' outboxes.
#[derive(Clone, Default)]
pub struct Outboxes {
    hosts: Arc<Mutex<HashMap<String, Arc<Outbox>>>>,
}

#[derive(Default)]
struct Outbox {
    waiting: Mutex<VecDeque<ToController>>,
    news: Notify,
}

impl Outboxes {
    fn of(&self, host: &str) -> Arc<Outbox> {
        let mut hosts = self.hosts.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(hosts.entry(host.to_owned()).or_default())
    }

    /// Leaves messages for a host.
    pub fn leave(&self, host: &str, messages: Vec<ToController>) {
        let outbox = self.of(host);
        let mut waiting = outbox.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(messages);
        let excess = waiting.len().saturating_sub(MOST);
        waiting.drain(..excess);
        drop(waiting);
        outbox.news.notify_one();
    }

    /// Takes what waits for a host; if nothing does, waits for something.
    pub async fn fetch(&self, host: &str, wait: Duration) -> Vec<ToController> {
        let outbox = self.of(host);
        let deadline = tokio::time::Instant::now() + wait;
        loop {
            let news = outbox.news.notified();
            let waiting: Vec<ToController> =
                outbox.waiting.lock().unwrap_or_else(PoisonError::into_inner).drain(..).collect();
            if !waiting.is_empty() {
                return waiting;
            }
            if tokio::time::timeout_at(deadline, news).await.is_err() {
                return Vec::new();
            }
        }
    }
}
