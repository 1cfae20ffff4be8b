//! Broken networks: scheduler, executors, driver and an S3 store each in a network namespace of its own, with a
//! switch between them that loses and delays packets. Every fault ends with the bytes of an undisturbed run
//! or with an error that names what was lost, within a stated time.
//!
//! Needs Linux, root, `ip netns`, Python and `METRA_MOTO`; `METRA_NETWORK_FAULTS` says how many faults are
//! drawn by chance.

use crate::processes::{Executor, Host, Program, Scheduler};
use crate::tables::Made;
use metra::internal::Stream;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
/// Whatever happens, a training of three seconds has ended after this time. It is the sum of what the parts
/// wait for: a store for 30 s, an executor that is given up for 8 s, and work that is repeated.
const LONGEST: Duration = Duration::from_secs(120);
const STORE: &str = "http://10.77.0.5:5000";
/// How to reach the store, and shards that last, so that a fault meets them.
const ENVIRONMENT: [(&str, &str); 6] = [
    ("AWS_ACCESS_KEY_ID", "key"),
    ("AWS_SECRET_ACCESS_KEY", "secret"),
    ("AWS_REGION", "us-east-1"),
    ("AWS_ALLOW_HTTP", "true"),
    ("AWS_ENDPOINT", STORE),
    ("METRA_TEST_PAUSE_FOLD", "300"),
];
const HOSTS: [&str; 5] = ["driver", "scheduler", "first", "second", "store"];

/// Namespaces with a switch between them; all go with this handle.
struct Network {
    names: Vec<String>,
    switch: Child,
    rules: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Network {
    /// `None`, with a message, where namespaces cannot be had.
    fn new() -> Option<Network> {
        let id = std::process::id();
        let names: Vec<String> = HOSTS
            .iter()
            .map(|host| format!("metra-{id}-{host}"))
            .collect();
        for name in &names {
            let added = Command::new("ip").args(["netns", "add", name]).output();
            if !added.is_ok_and(|added| added.status.success()) {
                metra_testing::skip("netns", "network namespaces cannot be made here");
                return None;
            }
        }
        let python = std::env::var("METRA_PYTHON").unwrap_or("python3".into());
        let mut switch = Command::new(python)
            .arg(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/tests/cluster/switch.py"
            ))
            .arg("1")
            .args((names.iter().zip(1..)).map(|(name, at)| format!("{name}=10.77.0.{at}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (rules, answers) = (switch.stdin.take().unwrap(), switch.stdout.take().unwrap());
        let mut network = Network {
            names,
            switch,
            rules,
            answers: BufReader::new(answers),
        };
        network.answered();
        Some(network)
    }

    fn host(&self, name: &str) -> Host {
        let at = HOSTS.iter().position(|host| *host == name).unwrap();
        Host::in_namespace(&self.names[at], &format!("10.77.0.{}", at + 1))
    }

    fn answered(&mut self) {
        let mut line = String::new();
        self.answers.read_line(&mut line).unwrap();
        assert!(
            ["ready\n", "done\n"].contains(&line.as_str()),
            "the switch ended: {line}"
        );
    }

    /// Lose and delay packets between two hosts, both ways; `*` is any.
    fn between(&mut self, one: &str, other: &str, loss: f64, delay: f64) {
        let name = |host: &str| match host {
            "*" => host.to_owned(),
            host => format!("metra-{}-{host}", std::process::id()),
        };
        let rule = serde_json::json!({
            "from": name(one), "to": name(other), "loss": loss, "delay": delay
        });
        writeln!(self.rules, "{rule}").unwrap();
        self.answered();
    }

    fn heal(&mut self) {
        self.between("*", "*", 0.0, 0.0);
    }
}

impl Drop for Network {
    fn drop(&mut self) {
        let _ = self.switch.kill();
        let _ = self.switch.wait();
        for name in &self.names {
            let _ = Command::new("ip").args(["netns", "delete", name]).output();
        }
    }
}

/// A cluster on a network, and a training on it.
struct Laboratory {
    executors: [Executor; 2],
    scheduler: Scheduler,
    _store: Program,
    network: Network,
    made: Made,
}

impl Laboratory {
    fn new() -> Option<Self> {
        let moto = metra_testing::variable("METRA_MOTO", "a moto_server")?;
        let network = Network::new()?;
        let store = network.host("store");
        let mut server = store.command(&moto);
        server.args(["-H", &store.address, "-p", "5000"]);
        let server = Program::start(server);
        make_bucket(&store);
        let scheduler = Scheduler::start_on(network.host("scheduler"), "");
        let executors = ["first", "second"]
            .map(|name| Executor::start_on(&network.host(name), &scheduler, "", &ENVIRONMENT));
        let made = Made::new(1, 3000, 16);
        let laboratory = Laboratory {
            executors,
            scheduler,
            _store: server,
            network,
            made,
        };
        laboratory.ended(&format!(
            "shard {} --label label --shards 4 -o s3://vectors/shards",
            laboratory.made.address()
        ));
        Some(laboratory)
    }

    fn driver(&self, line: &str) -> Program {
        let mut command = self.network.host("driver").metra(line);
        command.envs(ENVIRONMENT);
        Program::start(command)
    }

    fn ended(&self, line: &str) {
        let mut program = self.driver(line);
        let status = program.ended(LONGEST);
        assert!(status.success(), "{line}\n{}", program.errors());
    }

    fn training(&self, model: &str) -> String {
        format!(
            "train s3://vectors/shards/ --label label --method warca --rank 4 --set steps=60 \
             --set batch=64 --rounds 3 --seed 3 --cluster {} -o {}",
            self.scheduler.url(),
            self.made.beside(model)
        )
    }

    /// Train while `fault` happens, which begins with the second round. What came of it, and how long it took
    /// after the fault had begun.
    fn under(&mut self, fault: &Fault) -> (Outcome, Duration) {
        let model = std::path::PathBuf::from(self.made.beside("disturbed"));
        let _ = std::fs::remove_file(&model);
        let mut driver = self.driver(&self.training("disturbed"));
        let began = Instant::now();
        while !driver.errors().contains("round 1 of 3") {
            assert!(began.elapsed() < LONGEST, "{}", driver.errors());
            std::thread::sleep(Duration::from_millis(10));
        }
        let began = Instant::now();
        fault.happen(self, &mut driver);
        let status = driver.ended(LONGEST.saturating_sub(began.elapsed()));
        let took = began.elapsed();
        let outcome = match status.success() {
            true => Outcome::Model(std::fs::read(&model).unwrap()),
            false => {
                assert!(!model.exists(), "a failed training left a model");
                Outcome::Error(driver.errors())
            }
        };
        self.mend();
        (outcome, took)
    }

    /// Heal the network and wait until both executors are back; one that gave up is started again.
    fn mend(&mut self) {
        self.network.heal();
        for (executor, name) in self.executors.iter_mut().zip(["first", "second"]) {
            executor.program.signal("CONT");
            if executor.program.has_ended() {
                let host = self.network.host(name);
                *executor = Executor::start_on(&host, &self.scheduler, "", &ENVIRONMENT);
            }
        }
        self.scheduler
            .until("both executors", |status| crate::executors(status) >= 2);
    }
}

enum Outcome {
    Model(Vec<u8>),
    Error(String),
}

fn make_bucket(store: &Host) {
    let began = Instant::now();
    let put = format!(
        "import urllib.request as r; r.urlopen(r.Request('{STORE}/vectors', method='PUT'))"
    );
    loop {
        let mut command = store.command("python3");
        let done = command.args(["-c", &put]).output().unwrap();
        if done.status.success() {
            return;
        }
        assert!(began.elapsed() < 60 * SECOND, "no store");
        std::thread::sleep(SECOND / 5);
    }
}

/// What goes wrong, for how long; the network heals after it.
#[derive(Debug, Clone)]
enum Fault {
    /// Packets between two hosts are lost and delayed.
    Link {
        one: &'static str,
        other: &'static str,
        loss: f64,
        delay: f64,
        seconds: u64,
    },
    /// An executor is alive and makes no progress for half of every second.
    Slow { seconds: u64 },
}

impl Fault {
    fn cut(one: &'static str, other: &'static str, seconds: u64) -> Fault {
        Fault::Link {
            one,
            other,
            loss: 1.0,
            delay: 0.0,
            seconds,
        }
    }

    fn drawn(random: &mut Stream) -> Fault {
        let seconds = 1 + random.below(9);
        let mut host = || HOSTS[random.below(HOSTS.len() as u64) as usize];
        let (one, other) = (host(), host());
        let other = if one == other { "*" } else { other };
        match random.below(4) {
            0 => Fault::Slow { seconds },
            1 | 2 => Fault::cut(one, other, seconds),
            _ => Fault::Link {
                one,
                other,
                loss: random.below(60) as f64 / 100.0,
                delay: random.below(500) as f64 / 1000.0,
                seconds,
            },
        }
    }

    /// Until it is over, or nobody is left to suffer from it.
    fn happen(&self, laboratory: &mut Laboratory, driver: &mut Program) {
        match *self {
            Fault::Link {
                one,
                other,
                loss,
                delay,
                seconds,
            } => {
                laboratory.network.between(one, other, loss, delay);
                let began = Instant::now();
                while began.elapsed() < Duration::from_secs(seconds) && !driver.has_ended() {
                    std::thread::sleep(Duration::from_millis(50));
                }
                laboratory.network.heal();
            }
            Fault::Slow { seconds } => {
                for _ in 0..seconds {
                    for signal in ["STOP", "CONT"] {
                        laboratory.executors[0].program.signal(signal);
                        std::thread::sleep(SECOND / 2);
                    }
                }
            }
        }
    }
}

/// Errors that say what was lost.
const NAMED: [&str; 4] = [
    "stopped answering",
    "cannot be reached",
    "s3://vectors",
    "no executor",
];

#[test]
#[ignore = "slow: breaks networks"]
fn faults_of_the_network_end_in_the_same_bytes_or_a_named_error() {
    let Some(mut laboratory) = Laboratory::new() else {
        return;
    };
    laboratory.ended(&laboratory.training("undisturbed"));
    let expected = std::fs::read(laboratory.made.beside("undisturbed")).unwrap();
    let always = |one, other, loss, delay| Fault::Link {
        one,
        other,
        loss,
        delay,
        seconds: 20,
    };
    // The fault, whether the training must come to its end, and the time after which it has ended one way or
    // the other.
    let mut faults = vec![
        (
            "an executor is cut off for longer than it is waited for",
            Fault::cut("first", "*", 12),
            true,
        ),
        (
            "executors cannot reach each other",
            Fault::cut("first", "second", 4),
            true,
        ),
        (
            "the scheduler is cut off for a moment",
            Fault::cut("scheduler", "*", 3),
            true,
        ),
        (
            "the driver loses the scheduler",
            Fault::cut("driver", "scheduler", 30),
            false,
        ),
        (
            "the store is cut off for a moment",
            Fault::cut("store", "*", 4),
            true,
        ),
        (
            "the driver loses the store",
            Fault::cut("driver", "store", 40),
            false,
        ),
        (
            "a fifth of all packets is lost",
            always("*", "*", 0.2, 0.0),
            false,
        ),
        (
            "everything takes 200 ms longer",
            always("*", "*", 0.0, 0.2),
            true,
        ),
        (
            "an executor is slow but alive",
            Fault::Slow { seconds: 6 },
            true,
        ),
    ];
    let drawn = std::env::var("METRA_NETWORK_FAULTS").ok();
    let drawn: u64 = drawn.map_or(1, |count| count.parse().unwrap());
    for case in 0..drawn {
        let mut random = Stream::new(1, "network faults", case);
        faults.push(("drawn by chance", Fault::drawn(&mut random), false));
    }
    for (what, fault, survives) in faults {
        let (outcome, took) = laboratory.under(&fault);
        let said = match outcome {
            Outcome::Model(found) => {
                assert!(found == expected, "{what}: another model");
                "the same bytes".to_owned()
            }
            Outcome::Error(error) => {
                let last = error.lines().last().unwrap_or_default().to_owned();
                assert!(!survives, "{what}: {error}");
                assert!(
                    NAMED.iter().any(|name| last.contains(name)),
                    "{what}: {error}"
                );
                last
            }
        };
        println!("{what} {fault:?}: {said} after {:.1} s", took.as_secs_f64());
    }
}
