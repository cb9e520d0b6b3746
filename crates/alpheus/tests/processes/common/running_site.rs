//! A deployment whose service and controllers run, with a stream at each controller.

use super::Process;
use super::deployment::{QUERY, Site, free, until, until_or};
use std::process::Output;

/// A service and a controller for each house, with a stream at each.
pub(crate) struct RunningSite {
    pub(crate) place: Site,
    pub(crate) server: String,
    pub(crate) hosts: Vec<(String, Process)>,
    pub(crate) streams: Vec<String>,
    pub(crate) service: Process,
}

impl RunningSite {
    pub(crate) fn start() -> RunningSite {
        RunningSite::start_behind(|_, api| api.to_owned())
    }

    /// The same, where each house's controller reaches the service at the address
    /// that `behind` gives.
    pub(crate) fn start_behind(behind: impl Fn(&str, &str) -> String) -> RunningSite {
        RunningSite::start_in(Site::new(), behind)
    }

    /// The same in a place that is there.
    pub(crate) fn start_in(place: Site, behind: impl Fn(&str, &str) -> String) -> RunningSite {
        let api = free();
        let server = format!("https://{api}");
        let service = place.server(&api);
        let host = |house: &&str| {
            let (own, service) = (free(), behind(house, &api));
            let process = place.controller(house, &own, &format!("https://{service}"));
            (own, process)
        };
        let houses = place.houses;
        let hosts: Vec<(String, Process)> = houses.iter().map(host).collect();
        let add = |(house, (api, _)): (&&str, &(String, Process))| place.add_stream(house, api);
        let streams = houses.iter().zip(&hosts).map(add).collect();
        let running = RunningSite { place, server, hosts, streams, service };
        running.knows_all();
        running
    }

    /// Starts the service again, at the same address.
    pub(crate) fn start_service(&mut self) {
        let api = self.server.strip_prefix("https://").unwrap();
        self.service = self.place.server(api);
    }

    /// Waits until the service knows the streams of all houses: a query has only those that are
    /// known when it is accepted.
    pub(crate) fn knows_all(&self) {
        let many = self.place.houses.len();
        until("a stream of each house at the service", || {
            let asked = format!("EXPLAIN {QUERY} BETWEEN {many} AND 100");
            self.place.ask(&self.server, &asked).status.success().then_some(())
        });
    }

    /// The first row over so many owners.
    pub(crate) fn row(&self, population: u64) -> serde_json::Value {
        let rows = || self.place.rows(&self.server);
        let why = || {
            let (rows, log) = (rows(), self.service.log());
            let last = &rows[rows.len().saturating_sub(4)..];
            format!("no window over {population}; the last: {last:?}\n{log}")
        };
        until_or(why, || {
            rows().into_iter().find(|row| row["population"] == population && row["status"] == "ok")
        })
    }

    pub(crate) fn owner(&self, house: usize, what: &str) -> String {
        self.owner_with(house, what, &[])
    }

    /// The same with more flags.
    pub(crate) fn owner_with(&self, house: usize, what: &str, more: &[&str]) -> String {
        let output = self.owner_does(house, what, more);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{what} {more:?}: {said}");
        String::from_utf8(output.stdout).unwrap()
    }

    /// The same, whatever comes of it.
    pub(crate) fn owner_does(&self, house: usize, what: &str, more: &[&str]) -> Output {
        let (identity, controller) = (
            format!("pki/owner-{}", self.place.houses[house]),
            format!("https://{}", self.hosts[house].0),
        );
        let stream = self.streams[house].as_str();
        let reach = ["--identity", &identity, "--controller", &controller, "--stream", stream];
        self.place.run(&[&["owner", what], &reach[..], more].concat())
    }
}
