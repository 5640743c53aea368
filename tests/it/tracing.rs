//! Spans arrive at a collector: a small one in this process, that speaks OTLP over gRPC.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::Span;
use tonic::{Request, Response, Status};

use crate::support::{Desk, command};
use crate::tables::{JOB, assert_no_values, people};

/// A collector that keeps what it gets.
#[derive(Clone, Default)]
struct Collector {
    got: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        self.got.lock().unwrap().push(request.into_inner());
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

impl Collector {
    /// Listens on a free port for as long as the runtime lives.
    fn listen(&self, runtime: &tokio::runtime::Runtime) -> String {
        let free: SocketAddr = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let service = TraceServiceServer::new(self.clone());
        let server = tonic::transport::Server::builder().add_service(service).serve(free);
        runtime.spawn(server);
        while std::net::TcpStream::connect(free).is_err() {
            std::thread::yield_now();
        }
        format!("http://{free}")
    }

    fn spans(&self) -> Vec<Span> {
        let got = self.got.lock().unwrap();
        let scopes = got.iter().flat_map(|request| &request.resource_spans).flat_map(|spans| &spans.scope_spans);
        scopes.flat_map(|scope| scope.spans.clone()).collect()
    }
}

fn attributes(found: &[KeyValue]) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let value = |pair: &KeyValue| pair.value.as_ref().and_then(|value| value.value.as_ref()).map(text);
    found.iter().map(|pair| (pair.key.clone(), value(pair).unwrap_or_default())).collect()
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap()
}

#[test]
fn a_run_is_a_trace_with_a_span_for_every_phase() {
    let (runtime, collector) = (runtime(), Collector::default());
    let endpoint = collector.listen(&runtime);
    let desk = Desk::with(people(300), JOB);
    desk.secret_job(JOB);
    let run = ["run", &desk.name("job.toml"), "--run-id", "monday"];
    command(&run).env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).assert().success().stderr("");

    let spans = collector.spans();
    let named = |name: &str| {
        let found: Vec<&Span> = spans.iter().filter(|span| span.name == name).collect();
        assert_eq!(found.len(), 1, "{name} in {spans:?}");
        found[0]
    };
    let whole = named("run");
    assert_eq!(attributes(&whole.attributes)["run"], "monday");
    for phase in ["plan", "survey", "group", "verify", "commit"] {
        let span = named(phase);
        assert_eq!((&span.parent_span_id, &span.trace_id), (&whole.span_id, &whole.trace_id));
        assert!(span.end_time_unix_nano >= span.start_time_unix_nano);
        assert!(span.start_time_unix_nano >= whole.start_time_unix_nano);
    }
    assert_eq!(attributes(&named("survey").attributes)["rows"], "300");
    assert!(attributes(&named("verify").attributes)["smallest_class"].parse::<u64>().unwrap() >= 5);
    for span in &spans {
        let reported: Vec<String> = attributes(&span.attributes).into_values().collect();
        assert_no_values(&reported.join(" "));
    }
    let got = collector.got.lock().unwrap();
    let resource = attributes(&got[0].resource_spans[0].resource.as_ref().unwrap().attributes);
    assert_eq!(
        (resource["service.name"].as_str(), resource["service.version"].as_str()),
        ("throng", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn a_failed_run_is_a_failed_trace() {
    let (runtime, collector) = (runtime(), Collector::default());
    let endpoint = collector.listen(&runtime);
    let desk = Desk::with(people(300), JOB);
    let run = ["run", &desk.name("job.toml"), "--set", "privacy.k=1000"];
    command(&run).env("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &endpoint).assert().code(5);
    let failed: Vec<String> = collector
        .spans()
        .into_iter()
        .filter(|span| span.status.as_ref().is_some_and(|status| status.code == 2))
        .map(|span| span.name)
        .collect();
    assert!(failed.contains(&"run".to_owned()), "{failed:?}");
}

#[test]
fn spans_stay_at_home_unless_a_collector_is_named() {
    let (runtime, collector) = (runtime(), Collector::default());
    let endpoint = collector.listen(&runtime);
    let desk = Desk::with(people(100), JOB);
    let job = desk.name("job.toml");
    command(&["run", &job, "--quiet"]).assert().success();
    let mut disabled = command(&["run", &job, "--quiet"]);
    disabled.env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint).env("OTEL_SDK_DISABLED", "true").assert().success();
    assert!(collector.spans().is_empty());
}

#[test]
fn a_collector_that_is_not_there_is_no_reason_to_fail() {
    let desk = Desk::with(people(100), JOB);
    let mut run = command(&["run", &desk.name("job.toml")]);
    run.env("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1").env("OTEL_EXPORTER_OTLP_TIMEOUT", "500");
    let ran = run.output().unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert!(String::from_utf8_lossy(&ran.stderr).contains("spans could not all be sent"), "{ran:?}");
    assert_eq!(desk.released().num_rows(), 100);
}
