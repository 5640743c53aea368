//! Servers of other makers: moto's S3 and Microsoft's Azurite. They are installed on first use by
//! `tests/servers/install.sh`, which needs Python and Node; without these the tests fail and say so.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, OnceLock};
use std::thread::sleep;
use std::time::{Duration, Instant};

use object_store::ObjectStore;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use tempfile::TempDir;

use super::conformance::conforms;
use super::faults::{large, large_job};
use super::faulty::{Fault, Faulty, When};
use super::place::{Place, outcome};
use crate::support::{Desk, batch, command, write_parquet};
use crate::tables::{JOB, people};

/// How long a server may take to start on a machine that is busy.
const PATIENCE: Duration = Duration::from_secs(120);

/// The folder with the servers, which are installed if need be.
pub fn installed() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers/install.sh");
        let ran = Command::new(&script).output().unwrap();
        let err = String::from_utf8_lossy(&ran.stderr);
        assert!(ran.status.success(), "tests/servers/install.sh failed:\n{err}");
        PathBuf::from(String::from_utf8(ran.stdout).unwrap().trim())
    })
}

/// A script of `tests/servers`, run by the Python of the installation; what it prints.
pub fn python(script: &str, arguments: &[&str]) -> String {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/servers").join(script);
    let ran = Command::new(installed().join("python/bin/python")).arg(script).args(arguments).output().unwrap();
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

/// A server on loopback; it is stopped with this.
struct Running {
    child: Child,
    port: u16,
    _folder: TempDir,
}

impl Running {
    fn start(program: &Path, arguments: impl Fn(&str, &Path) -> Vec<String>) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let folder = tempfile::tempdir().unwrap();
        let child = Command::new(program)
            .args(arguments(&port.to_string(), folder.path()))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut running = Self { child, port, _folder: folder };
        let start = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(running.child.try_wait().unwrap().is_none(), "{} ended at once", program.display());
            assert!(start.elapsed() < PATIENCE, "{} does not answer", program.display());
            sleep(Duration::from_millis(50));
        }
        running
    }

    /// The answer to a plain request.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let headers = "Host: 127.0.0.1\r\nContent-Length: 0\r\nConnection: close";
        write!(stream, "{request} HTTP/1.1\r\n{headers}\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        answer
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Both are of no use when the server has ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// moto with the bucket `lake`.
fn moto() -> (Running, Arc<dyn ObjectStore>) {
    let program = installed().join("python/bin/moto_server");
    let server = Running::start(&program, |port, _| ["-H", "127.0.0.1", "-p", port].map(String::from).to_vec());
    server.ask("PUT /lake");
    let store = AmazonS3Builder::new()
        .with_endpoint(format!("http://127.0.0.1:{}", server.port))
        .with_allow_http(true)
        .with_bucket_name("lake")
        .with_access_key_id("moto")
        .with_secret_access_key("moto");
    let store = Arc::new(store.build().unwrap());
    (server, store)
}

/// Azurite with the container `lake`.
fn azurite() -> (Running, Arc<dyn ObjectStore>) {
    let program = installed().join("node/node_modules/.bin/azurite-blob");
    let server = Running::start(&program, |port, folder| {
        let folder = folder.to_str().unwrap();
        let arguments = ["--blobHost", "127.0.0.1", "--blobPort", port, "--location", folder, "--silent"];
        arguments.into_iter().chain(["--skipApiVersionCheck", "--disableTelemetry"]).map(String::from).collect()
    });
    python("container.py", &[&server.port.to_string(), "lake"]);
    let store = MicrosoftAzureBuilder::new()
        .with_account("devstoreaccount1")
        .with_access_key(EMULATOR_KEY)
        .with_endpoint(azurite_endpoint(&server))
        .with_allow_http(true)
        .with_container_name("lake");
    let store = Arc::new(store.build().unwrap());
    (server, store)
}

/// The key of Azurite's own account, which is not a secret.
const EMULATOR_KEY: &str = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

fn azurite_endpoint(server: &Running) -> String {
    format!("http://127.0.0.1:{}/devstoreaccount1", server.port)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn moto_conforms_and_keeps_no_parts() {
    let (server, store) = moto();
    let place = Place::new(store, "s3://lake/night");
    conforms(&place).await;

    let place = Place::new(Arc::clone(&place.store), "s3://lake/parts");
    place.input("a.parquet", large(200)).await;
    assert!(outcome(place.run("clean", &large_job()).await).1);
    let faulty = Faulty::at_kind(&place.store, "put part", 1, Fault::Cut, When::Before);
    place.through(Arc::new(faulty)).run("failed", &large_job()).await.unwrap_err();
    let uploads = server.ask("GET /lake?uploads");
    assert!(uploads.contains("ListMultipartUploadsResult") && !uploads.contains("<UploadId>"), "{uploads}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn azurite_conforms() {
    let (_server, store) = azurite();
    conforms(&Place::new(store, "az://lake/night")).await;
}

#[test]
fn a_job_runs_on_azure() {
    let (server, _) = azurite();
    let desk = Desk::new();
    write_parquet(&desk.path("in.parquet"), &batch(people(60)));
    let options = format!("endpoint = \"{}\"\nallow-http = true", azurite_endpoint(&server));
    desk.write(
        "job.toml",
        &format!("version = 1\nsource.url = \"in.parquet\"\nsink.url = \"az://lake/out\"\nsink.options.{}\n{JOB}", {
            options.replace('\n', "\nsink.options.")
        }),
    );
    let variables = [("AZURE_STORAGE_ACCOUNT_NAME", "devstoreaccount1"), ("AZURE_STORAGE_ACCOUNT_KEY", EMULATOR_KEY)];
    let job = desk.name("job.toml");
    for name in ["run", "verify"] {
        command(&[name, &job]).envs(variables).assert().success();
    }
    let plan = command(&["plan", &job]).envs(variables).output().unwrap().stdout;
    let plan = String::from_utf8(plan).unwrap();
    let reported =
        format!("sink: az://lake/out (Azure Blob Storage, endpoint {}, retries 10", azurite_endpoint(&server));
    assert!(plan.contains(&reported) && !plan.contains(EMULATOR_KEY), "{plan}");
}
