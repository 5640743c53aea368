//! A scheduler and executors on free ports of loopback, which end with the test.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;
use tempfile::TempDir;

/// Timeout of anything in a test. Nothing is measured by it.
const PATIENCE: Duration = Duration::from_secs(900);

/// How long an executor or a driver may be silent. Soon noticed, and yet no machine is so busy that the living look dead.
pub const SILENCE: Duration = Duration::from_secs(10);

/// Two ports in a row that are free.
fn two_ports() -> u16 {
    loop {
        let first = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = first.local_addr().unwrap().port();
        if port < u16::MAX && TcpListener::bind(("127.0.0.1", port + 1)).is_ok() {
            return port;
        }
    }
}

fn port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// What a GET of a path on a port of loopback answers: the status and the body.
pub fn get(port: u16, path: &str) -> Option<(u16, String)> {
    let mut connection = TcpStream::connect(("127.0.0.1", port)).ok()?;
    write!(connection, "GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n").ok()?;
    let mut answer = String::new();
    connection.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    Some((head.split(' ').nth(1)?.parse().ok()?, body.to_owned()))
}

/// Waits until something is there.
pub fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(begun.elapsed() < PATIENCE, "waited in vain for {what}");
        sleep(Duration::from_millis(10));
    }
}

/// The command with nothing of the caller's environment that could change what it does.
fn throng(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_throng"));
    for (key, _) in std::env::vars().filter(|(key, _)| key.starts_with("THRONG_") || key.starts_with("AWS_")) {
        command.env_remove(key);
    }
    command.args(arguments).envs(environment.iter().copied());
    command
}

/// A process with its standard error in a file.
pub struct Process {
    pub child: Child,
    log: PathBuf,
}

impl Process {
    fn start(mut command: Command, log: PathBuf) -> Self {
        let file = File::create(&log).unwrap();
        let child = command.stdout(Stdio::null()).stderr(file).spawn().unwrap();
        Self { child, log }
    }

    /// What it has said so far.
    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: &str) {
        Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
    }

    /// Its exit code, when it has ended; none when a signal ended it.
    pub fn end(&mut self) -> Option<i32> {
        wait("the end of a process", || self.child.try_wait().unwrap()).code()
    }

    /// Whether it still runs.
    pub fn runs(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An executor.
pub struct Executor {
    pub process: Process,
    /// By which its name begins.
    pub port: u16,
    pub health: u16,
}

/// The progress of a job on the cluster, as reported by the scheduler.
#[derive(Debug, Clone, Default)]
pub struct Progress {
    /// Partitions that are done, and all, by stage.
    pub stages: BTreeMap<usize, (u64, u64)>,
    /// Names of executors that have done tasks.
    pub executors: Vec<String>,
}

impl Progress {
    /// Whether a stage has begun to yield, and is not done.
    pub fn amid(&self, stage: usize) -> bool {
        self.stages.get(&stage).is_some_and(|(done, all)| *done > 0 && done < all)
    }

    /// Whether a stage is done.
    pub fn past(&self, stage: usize) -> bool {
        self.stages.get(&stage).is_some_and(|(done, all)| done == all)
    }
}

/// A scheduler and its executors.
pub struct Fleet {
    pub scheduler: Process,
    pub executors: Vec<Executor>,
    port: u16,
    folder: TempDir,
    environment: Vec<(String, String)>,
}

impl Fleet {
    /// A scheduler and executors of one task each, ready to work.
    pub fn start(executors: usize) -> Self {
        Self::with(executors, &[])
    }

    /// The same with more in the environment of every process.
    pub fn with(executors: usize, environment: &[(&str, &str)]) -> Self {
        let (folder, port) = (tempfile::tempdir().unwrap(), two_ports());
        let (port_text, wanted) = (port.to_string(), executors.to_string());
        let arguments = ["scheduler", "--port", &port_text, "--min-executors", &wanted];
        let silence = format!("{}s", SILENCE.as_secs());
        let timeouts = ["--executor-timeout", &silence, "--driver-timeout", &silence];
        let scheduler = throng(&[&arguments[..], &timeouts].concat(), environment);
        let scheduler = Process::start(scheduler, folder.path().join("scheduler.log"));
        let environment = environment.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let mut fleet = Self { scheduler, executors: Vec::new(), port, folder, environment };
        wait("the scheduler", || get(port, "/healthz").filter(|(status, _)| *status == 200));
        (0..executors).for_each(|_| fleet.add());
        wait("the executors", || get(port, "/readyz").filter(|(status, _)| *status == 200));
        fleet
    }

    /// Starts one more executor.
    pub fn add(&mut self) {
        let (data, tasks, health) = (port(), port(), port());
        let number = |port: u16| port.to_string();
        let work_dir = self.folder.path().join(format!("work-{data}")).display().to_string();
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let command = throng(
            &[
                "executor",
                "--scheduler-port",
                &number(self.port),
                "--port",
                &number(data),
                "--task-port",
                &number(tasks),
                "--health-port",
                &number(health),
                "--advertise",
                "127.0.0.1",
                "--work-dir",
                &work_dir,
                "--memory-limit",
                "1GB",
                "--concurrency",
                "1",
                "--heartbeat",
                "1s",
            ],
            &environment,
        );
        let process = Process::start(command, self.folder.path().join(format!("executor-{data}.log")));
        self.executors.push(Executor { process, port: data, health });
    }

    /// The address of the scheduler.
    pub fn address(&self) -> String {
        format!("df://127.0.0.1:{}", self.port)
    }

    /// Starts a run of a job on this cluster, which logs what it does.
    pub fn run(&self, job: &str, more: &[&str]) -> Process {
        let address = self.address();
        let environment: Vec<(&str, &str)> =
            self.environment.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let command = throng(&[&["run", job, "-v", "--cluster", &address], more].concat(), &environment);
        let runs = fs::read_dir(self.folder.path()).unwrap().count();
        Process::start(command, self.folder.path().join(format!("driver-{runs}.log")))
    }

    /// How far the newest job of a run is; none while it has not been submitted, or when it is over.
    pub fn progress(&self, run: &Process, name: &str) -> Option<Progress> {
        let said = run.said();
        let line = said.lines().rev().find(|line| line.contains("submitted to the cluster"))?;
        if !line.contains(name) {
            return None;
        }
        let job = line.rsplit_once("job=")?.1;
        let (status, body) = get(self.port + 1, &format!("/progress/{job}"))?;
        if status != 200 {
            return None;
        }
        let reported: Value = serde_json::from_str(&body).unwrap();
        let number = |value: &Value| value.as_u64().unwrap();
        Some(Progress {
            stages: reported["stages"]
                .as_object()
                .unwrap()
                .iter()
                .map(|(stage, done)| (stage.parse().unwrap(), (number(&done[0]), number(&done[1]))))
                .collect(),
            executors: reported["executors"].as_object().unwrap().keys().cloned().collect(),
        })
    }

    /// The place of an executor by its name.
    pub fn position(&self, name: &str) -> usize {
        let named = |executor: &Executor| name.starts_with(&format!("127.0.0.1:{}-", executor.port));
        self.executors.iter().position(named).unwrap_or_else(|| panic!("nobody is called {name}"))
    }

    /// Files in the work folders of the executors that still run.
    pub fn work_files(&mut self) -> Vec<PathBuf> {
        let alive: Vec<u16> =
            self.executors.iter_mut().filter_map(|one| one.process.runs().then_some(one.port)).collect();
        let folders = alive.iter().map(|port| self.folder.path().join(format!("work-{port}")));
        folders.flat_map(|folder| crate::support::files(&folder)).collect()
    }
}
