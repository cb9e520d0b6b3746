//! Parties with good certificates who would fill the service's disk, or keep its room for bodies.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::deployment::{HOUSES, RunningSite, Site, free};
use crate::common::tls;
use alpheus_crypto::mac::Tag;
use alpheus_encrypted_stream::tick::claim::{Claim, ClaimKind, RootPrefix};
use alpheus_encrypted_stream::tick::frame::{MAC_LEN, body};
use alpheus_node::network::blocking_client::BlockingClient;
use alpheus_node::network::error::{Problem, RequestError};
use alpheus_node::network::identity::IdentityFolder;
use alpheus_node::network::role::Role;
use alpheus_streams::wire::{Receipt, Upload, UploadStatus};
use alpheus_time::Timestamp;
use std::io::{Read, Write};
use std::time::Duration;

/// A device that makes frames of nothing, which nobody can check before they are summed.
pub(crate) struct Flooder {
    client: BlockingClient,
    upload: Upload,
}

impl Flooder {
    /// The device of this name, which may send for this stream.
    pub(crate) fn of(running: &RunningSite, device: &str, stream: &str) -> Flooder {
        let folder = running.place.path(&format!("pki/{device}"));
        let identity = IdentityFolder::open(&folder, Role::Producer).unwrap();
        let client = BlockingClient::new(&running.server, Role::Server, &identity).unwrap();
        let stream = stream.parse().unwrap();
        let upload = Upload { stream, outbox: [9; 16], number: 0, frames: Vec::new() };
        Flooder { client, upload }
    }

    /// Sends this frame so often, in one upload.
    pub(crate) fn send(
        &mut self,
        frame: &[u8],
        times: usize,
    ) -> Result<Vec<UploadStatus>, RequestError> {
        self.upload.number += 1;
        self.upload.frames = vec![frame.to_vec(); times];
        let call = self.client.call("/v1/events", &vec![self.upload.clone()], Duration::ZERO);
        call.map(|receipt: Receipt| receipt.uploads)
    }
}

/// A frame of the right form, and of this many words.
pub(crate) fn frame(kind: ClaimKind, words: usize) -> Vec<u8> {
    let [from, to] = [1, 2].map(|second| Timestamp(second * 1_000_000));
    let (root, tag) = (RootPrefix([0; 16]), Tag([0; 16]));
    let claim = Claim { kind, session: 7, from, to, masked_count: 0, root, tag };
    let mut frame = body(&claim, &vec![0; words]);
    frame.extend([0; MAC_LEN]);
    frame
}

#[test]
fn a_device_that_sends_more_than_a_stream_may_is_refused_and_fills_no_disk() {
    let running =
        RunningSite::start_in(Site::with_setting("ALPHEUS_STREAM_MEGABYTES", "1"), |_, api| {
            api.to_owned()
        });
    let meter = format!("meter-{}", HOUSES[0]);
    let mut flooder = Flooder::of(&running, &meter, &running.streams[0]);
    // Longer than frames of the schema can be.
    let long = flooder.send(&frame(ClaimKind::Tick, 100_000), 1).unwrap();
    assert_eq!(long, [UploadStatus::Malformed]);
    flooder.upload.number = 0;
    let gap = frame(ClaimKind::Gap, 0);
    let refused = (0..100).find_map(|_| flooder.send(&gap, 1_000).err());
    let Some(RequestError::Refused(Problem { rule, status, help, id, detail, .. })) = refused
    else {
        unreachable!("no quota holds: {refused:?}")
    };
    assert_eq!((status, rule.as_str(), id.as_deref()), (429, "stream-quota", Some("stream-quota")));
    assert!(detail.contains("1 MB in a day"), "{detail}");
    assert!(help.is_some_and(|help| help.contains("`stream-megabytes`")));
    assert!(flooder.upload.number < 10, "{} uploads were taken", flooder.upload.number - 1);
    // It keeps nobody else out, and the service's consumers neither.
    let asked = running.place.ask(&running.server, "SHOW STREAMS");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
}

#[test]
fn bodies_that_are_announced_and_do_not_come_keep_nobody_out() {
    let (place, api) = (Site::new(), free());
    let service = place.server(&api);
    // As much as the service has room for, of four devices: all is announced, and nothing comes.
    let announce = |eve: usize| {
        let mut connection = tls::connect(&place.path(&format!("pki/eve-{eve}")), &api);
        let head = format!(
            "POST /v1/events HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\n\
             Expect: 100-continue\r\n\r\n",
            16 << 20
        );
        connection.write_all(head.as_bytes()).unwrap();
        connection.flush().unwrap();
        // Now it waits for the body.
        let mut answer = [0; 12];
        connection.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"HTTP/1.1 100");
        connection
    };
    (0..4).for_each(|eve| place.issue("producer", &format!("eve-{eve}")));
    let begun: Vec<_> = (0..4).flat_map(|eve| [eve; 8]).map(announce).collect();
    let asked = place.ask(&format!("https://{api}"), "SHOW STREAMS");
    assert!(asked.status.success(), "{}", String::from_utf8_lossy(&asked.stderr));
    // They are not waited for for as long as so many bytes could take.
    for mut connection in begun {
        let mut said = String::new();
        let mut answer = [0; 64];
        while !said.contains("HTTP/1.1 408") {
            let read = connection.read(&mut answer).unwrap();
            assert!(read > 0, "{said}");
            said.push_str(&String::from_utf8_lossy(&answer[..read]));
        }
    }
    drop(service);
}
