//! `alpheus replay --state` killed at random points, seeded, and started again
//! until it is done: each window has one row, which is the truth, nothing was
//! released twice, and what was cut off is said.
//!
//! `ALPHEUS_KILLS` says how many seeds; `make kills` runs two hundred.

#![expect(clippy::unwrap_used, reason = "a test's way to fail")]

use crate::common::recording::{Draw, Recording, Truth, check, read};
use crate::common::witness::Witness;
use crate::common::{Process, alpheus};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const STREAMS: u64 = 4;
/// More than a replay feeds in one commit, so that kills fall between them.
const WINDOWS: u64 = 300;

struct Scene {
    folder: tempfile::TempDir,
    truth: Truth,
}

impl Scene {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let recording = Recording::made(STREAMS, WINDOWS);
        recording.write(folder.path());
        Self { truth: recording.truth(), folder }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn start(&self, controllers: &str, state: &Path, output: &Path) -> Process {
        let mut command = alpheus(["replay", "--controllers", controllers]);
        let files = [
            ("--schema", "schema.yaml"),
            ("--source", "source.yaml"),
            ("--policies", "policies.yaml"),
            ("--query", "sum.sql"),
            ("--input", "data.csv"),
        ];
        for (flag, name) in files {
            command.arg(flag).arg(self.path(name));
        }
        Process::start(command.arg("--state").arg(state).arg("--output").arg(output))
    }

    /// How long a run takes that nobody kills; its answers are the truth.
    fn undisturbed(&self, controllers: &str) -> Duration {
        let (state, output) = (self.path("calm"), self.path("calm.json"));
        let began = Instant::now();
        let mut process = self.start(controllers, &state, &output);
        assert!(process.wait().success(), "{}", process.log());
        let took = began.elapsed();
        let cut = check(&read(&output), &self.truth, "undisturbed");
        assert!(cut.is_empty());
        std::fs::remove_dir_all(state).unwrap();
        took
    }

    /// One to three kills, then to the end. Returns how many met a process.
    fn tortured(&self, controllers: &str, seed: u64, whole: &mut Duration) -> usize {
        let about = format!("seed {seed}, {controllers}");
        let (state, output) = (self.path("state"), self.path("out.json"));
        let (mut draw, mut witness) = (Draw(seed), Witness::default());
        let mut killed = 0;
        for _ in 0..1 + draw.below(3) {
            let mut process = self.start(controllers, &state, &output);
            let life = u64::try_from(whole.as_micros()).unwrap();
            std::thread::sleep(Duration::from_micros(draw.below(life)));
            process.kill();
            let met = !output.exists();
            killed += usize::from(met);
            // Other work on the machine comes and goes.
            *whole = whole.mul_f64(if met { 1.05 } else { 0.8 });
            witness.look(&state, &about);
        }
        let mut process = self.start(controllers, &state, &output);
        assert!(process.wait().success(), "{about}: {}", process.log());
        witness.look(&state, &about);
        let cut = check(&read(&output), &self.truth, &about);
        assert!(cut.len() <= killed, "{about}: {killed} kills cost the windows {cut:?}");
        std::fs::remove_dir_all(state).unwrap();
        std::fs::remove_file(output).unwrap();
        killed
    }
}

fn seeds() -> u64 {
    std::env::var("ALPHEUS_KILLS").map_or(20, |many| many.parse().unwrap())
}

fn torture(controllers: &str, parity: u64) {
    let scene = Scene::new();
    let mut whole = scene.undisturbed(controllers);
    let seeds = (0..seeds()).filter(|seed| seed % 2 == parity);
    let met: usize = seeds.clone().map(|seed| scene.tortured(controllers, seed, &mut whole)).sum();
    assert!(met * 2 >= seeds.count(), "only {met} kills met a running replay");
}

#[test]
fn an_interrupted_replay_goes_on_without_a_gap() {
    let scene = Scene::new();
    let whole = scene.undisturbed("1");
    let (state, output) = (scene.path("state"), scene.path("out.json"));
    let mut draw = Draw(7);
    let mut life = u64::try_from(whole.as_micros() / 2).unwrap();
    let mut stopped = 0;
    for _ in 0..40 {
        let mut process = scene.start("1", &state, &output);
        std::thread::sleep(Duration::from_micros(draw.below(life)));
        process.terminate();
        let status = process.wait();
        let said = process.log();
        if status.code() == Some(130) {
            assert!(said.contains("run the same command again"), "{said}");
            assert!(!output.exists());
            stopped += 1;
        } else if status.success() && stopped > 0 {
            break;
        } else if status.success() {
            // The machine has become faster: from the beginning, and sooner.
            std::fs::remove_dir_all(&state).unwrap();
            std::fs::remove_file(&output).unwrap();
            life /= 2;
        } else {
            // It was not running yet.
            life += life / 2;
        }
    }
    assert!(stopped > 0, "no interruption met a running replay");
    let mut process = scene.start("1", &state, &output);
    assert!(process.wait().success(), "{}", process.log());
    let cut = check(&read(&output), &scene.truth, "interrupted");
    assert!(cut.is_empty(), "{stopped} interruptions cost the windows {cut:?}");
}

#[cfg(unix)]
#[test]
fn a_state_folder_is_its_users_alone() {
    use std::os::unix::fs::PermissionsExt;
    let scene = Scene::new();
    let (state, output) = (scene.path("deep/state"), scene.path("out.json"));
    assert!(scene.start("1", &state, &output).wait().success());
    for folder in [scene.path("deep"), state.clone(), state.join("private"), state.join("service")]
    {
        let mode = std::fs::metadata(&folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700, "{}", folder.display());
    }
}

#[test]
fn one_controller_survives_kills() {
    torture("1", 0);
}

#[test]
fn a_controller_per_owner_survives_kills() {
    torture("per-owner", 1);
}
