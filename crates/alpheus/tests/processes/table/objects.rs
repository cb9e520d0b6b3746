//! A server over object stores: the crate's local file system, and a bucket behind the
//! S3 protocol, here one in memory that refuses now and then.

use crate::common::Process;
use crate::table::crashes::{fix, sum};
use crate::table::world::{SCHEMA, Storage, World, cars, total};
use alpheus_node::service::http::Server;
use alpheus_node::service::shutdown::Trigger;
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Objects by `/bucket/key`, and how many requests there were.
#[derive(Default)]
struct Inside {
    objects: BTreeMap<String, Bytes>,
    requests: u64,
}

type SharedBucket = Arc<Mutex<Inside>>;

fn get(object: Option<&Bytes>, range: &str) -> Response {
    let Some(bytes) = object else { return StatusCode::NOT_FOUND.into_response() };
    let about = [
        (header::ETAG, "\"one\"".to_owned()),
        (header::LAST_MODIFIED, "Wed, 21 Oct 2015 07:28:00 GMT".to_owned()),
    ];
    let Some(range) = range.strip_prefix("bytes=") else {
        return (about, bytes.clone()).into_response();
    };
    let (from, to) = range.split_once('-').unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    let range = [(header::CONTENT_RANGE, format!("bytes {from}-{to}/{}", bytes.len()))];
    (StatusCode::PARTIAL_CONTENT, about, range, bytes.slice(from..=to)).into_response()
}

/// The objects of a bucket right below a prefix.
fn list(inside: &Inside, bucket: &str, query: &str) -> Response {
    let prefix = query.split('&').find_map(|part| part.strip_prefix("prefix=")).unwrap_or("");
    let prefix = format!("/{bucket}/{}", prefix.replace("%2F", "/"));
    let below = |key: &&String| key.strip_prefix(&prefix).is_some_and(|name| !name.contains('/'));
    let mut said = "<ListBucketResult><IsTruncated>false</IsTruncated>".to_owned();
    for key in inside.objects.keys().filter(below) {
        let (key, size) = (&key[bucket.len() + 2..], inside.objects[key].len());
        said += &format!(
            "<Contents><Key>{key}</Key><LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>\"one\"</ETag><Size>{size}</Size></Contents>"
        );
    }
    (said + "</ListBucketResult>").into_response()
}

/// Puts that are for new names only, lists, ranged gets, and deletes of several at once.
async fn s3(
    State(shared): State<SharedBucket>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    let mut inside = shared.lock().unwrap();
    inside.requests += 1;
    let header = |name| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or("");
    if !header(header::AUTHORIZATION).starts_with("AWS4-HMAC-SHA256 Credential=a-key/") {
        return StatusCode::FORBIDDEN.into_response();
    }
    if inside.requests.is_multiple_of(7) {
        return StatusCode::SERVICE_UNAVAILABLE.into_response();
    }
    let key = uri.path().to_owned();
    match method {
        Method::PUT => {
            assert_eq!(header(header::IF_NONE_MATCH), "*", "no object is overwritten");
            if inside.objects.contains_key(&key) {
                return StatusCode::PRECONDITION_FAILED.into_response();
            }
            inside.objects.insert(key, body);
            [(header::ETAG, "\"one\"")].into_response()
        }
        Method::GET if uri.query().is_some_and(|query| query.contains("list-type=2")) => {
            list(&inside, key.trim_matches('/'), uri.query().unwrap())
        }
        Method::GET => get(inside.objects.get(&key), header(header::RANGE)),
        Method::POST => {
            let (text, bucket) = (String::from_utf8(body.to_vec()).unwrap(), key.trim_matches('/'));
            let mut said = "<DeleteResult>".to_owned();
            for named in text.split("<Key>").skip(1) {
                let named = named.split("</Key>").next().unwrap();
                inside.objects.remove(&format!("/{bucket}/{named}"));
                said += &format!("<Deleted><Key>{named}</Key></Deleted>");
            }
            (said + "</DeleteResult>").into_response()
        }
        _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
    }
}

/// Serves a bucket from this process; its address.
fn bucket(shared: &SharedBucket) -> (Trigger, String) {
    let routes = Router::new().fallback(s3).with_state(Arc::clone(shared));
    let routes = routes.layer(axum::extract::DefaultBodyLimit::disable());
    let trigger = Trigger::new();
    let (shutdown, (report, hear)) = (trigger.shutdown(), std::sync::mpsc::channel());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            let server = Server::bind("127.0.0.1:0".parse().unwrap(), None).await.unwrap();
            report.send(server.address().unwrap()).unwrap();
            server.serve(routes, shutdown, Duration::from_secs(1)).await;
        });
    });
    (trigger, format!("http://{}", hear.recv().unwrap()))
}

/// Everything that a table does, with the server killed in between.
fn works_over(storage: Storage) {
    let mut world = World::over(SCHEMA, storage);
    world.write_rows("counts.csv", 0, 20_000);
    let mut owner = Process::start(&mut world.command("append counts.csv"));
    std::thread::sleep(Duration::from_millis(200));
    world.server.kill();
    world.restart_server();
    assert!(owner.wait().success(), "{}", owner.log());
    assert_eq!(sum(&world), total(20_000));
    let range = "SELECT SUM(cars) WHERE timestamp BETWEEN 1367366400 AND 1367370000";
    assert_eq!(world.ask(range)[0]["sum_cars"], total(2), "of a block that was fetched");
    fix(&world, 50_000);
    world.done("prune");
    let all: u64 = total(20_000).parse().unwrap();
    assert_eq!(sum(&world), (all - cars(7) + 50_000).to_string());
    world.done("verify");
}

#[test]
fn a_table_in_a_bucket() {
    let shared = SharedBucket::default();
    let (_trigger, endpoint) = bucket(&shared);
    let environment = vec![
        ("AWS_ENDPOINT", endpoint),
        ("AWS_ALLOW_HTTP", "true".to_owned()),
        ("AWS_REGION", "nowhere-1".to_owned()),
        ("AWS_ACCESS_KEY_ID", "a-key".to_owned()),
        ("AWS_SECRET_ACCESS_KEY", "a-secret".to_owned()),
    ];
    works_over(Storage { state: "s3://bucket/some/tables".to_owned(), environment });
    let inside = shared.lock().unwrap();
    assert!(inside.requests > 20, "some of them were refused");
    // Four blocks less the one that was pruned, one that was rewritten, the owner's saved state,
    // and the table.
    assert_eq!(inside.objects.len(), 6, "{:?}", inside.objects.keys());
    assert!(inside.objects.keys().all(|key| key.starts_with("/bucket/some/tables/")));
}

#[test]
fn a_table_in_a_folder_of_the_object_store() {
    let folder = tempfile::tempdir().unwrap();
    let state = format!("file://{}/tables", folder.path().display());
    works_over(Storage { state, environment: Vec::new() });
}
