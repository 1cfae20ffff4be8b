//! The cluster as a user meets it: one scheduler, executors that join it, and a driver that sends
//! plans and collects results. All three are this crate around Ballista 55.
//!
//! What Ballista leaves open is closed here:
//! - `scheduler` serves, beside Ballista's protocol, a page of its own (`status_api`): who is there,
//!   which build, how far each job is. Ballista's protocol tells none of it, and its REST interface
//!   is a heavy feature.
//! - `executor` asks that page first, so that a wrong address or another build is a named error at
//!   the start, not a vague one in the middle of a job.
//! - `job` sends physical plans, follows them and fetches results with a limit on every wait:
//!   nothing hangs when a machine dies.
//! - `slots` gives slots back that are lost with an executor.
//! - Adaptive planning is off everywhere: with it a job whose map output was lost hangs
//!   (apache/datafusion-ballista issue 1986).
//!
//! **What operators must know.** Before a task is sent, the scheduler cuts the plan's leaves
//! (`DataSourceExec` over files or memory, shuffle readers) down to the task's partitions and numbers
//! them from 0 again. So `execute(partition)` does not tell which shard it is: a shard's key must
//! travel with its rows or its file. A leaf of one's own is not cut: every task would run all of it.

pub mod address;
mod connection;
pub mod executor;
pub mod handshake;
pub mod hello;
pub mod job;
pub mod scheduler;
mod session;
mod slots;
pub mod status;
mod status_api;

pub use address::SchedulerAddress;
pub use handshake::Identity;
pub use job::{Cluster, JobProgress};
pub use session::MESSAGE_SIZE;
