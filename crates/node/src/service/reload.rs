//! TLS files that are read again while a process runs: when they change, and on SIGHUP.
//!
//! Files that cannot be used change nothing: what was read before stays in use. The log says why, and
//! the report on health that it is so; they are tried again at each look, since what was wrong may lie
//! outside of them. The log also says when a certificate nears its end: the one in use.

use super::expiry::{self, Validity, validity_of};
use std::collections::BTreeMap;
use std::error::Error;
use std::fmt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Once, PoisonError, RwLock, Weak};
use std::time::{Duration, SystemTime};

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_secs(5);

/// All that is in use in this process.
static WATCHED: Mutex<Vec<Weak<dyn Reload>>> = Mutex::new(Vec::new());
static THREAD: Once = Once::new();
/// Held while the files are looked at.
static LOOKING: Mutex<()> = Mutex::new(());
/// Whether all files are to be read again, changed or not.
static ASKED: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

/// What was made of files, and is made again when they change.
pub struct Live<T> {
    current: RwLock<Arc<T>>,
    files: Vec<PathBuf>,
    seen: Mutex<Observation>,
    make: Make<T>,
}

/// What was seen of the files, and what came of it.
#[derive(Debug, Default)]
struct Observation {
    stamps: Vec<Stamp>,
    /// The validity of the certificate in use.
    validity: Option<Validity>,
    /// Why the files could not be used when they were read last.
    failed: Option<String>,
}

/// What is known about a certificate's file in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InUse {
    /// The validity of what was read of it.
    pub(super) validity: Option<Validity>,
    /// Whether what it holds by now, or a file beside it, cannot be used.
    pub(super) failed: bool,
}

type Make<T> = Box<dyn Fn() -> Result<T, Box<dyn Error + Send + Sync>> + Send + Sync>;

/// What changes when a file is replaced: its number, size and time; nothing if it is missing.
type Stamp = Option<(u64, u64, SystemTime)>;

/// Something that can be made again.
trait Reload: Send + Sync {
    /// Makes it again if its files have changed, or if it is `forced`.
    fn reload(&self, forced: bool);

    /// The file whose end is watched.
    fn certificate(&self) -> Option<&Path>;

    /// What is known about it.
    fn in_use(&self) -> InUse;
}

impl<T> fmt::Debug for Live<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Live").field("files", &self.files).finish_non_exhaustive()
    }
}

impl<T: Send + Sync + 'static> Live<T> {
    /// Watches files, a certificate's first. `first` makes something of them now, and `make` again.
    ///
    /// # Errors
    /// Those of `first`.
    pub fn watching<F, E: Into<Box<dyn Error + Send + Sync>>>(
        files: Vec<PathBuf>,
        first: impl FnOnce() -> Result<T, F>,
        make: impl Fn() -> Result<T, E> + Send + Sync + 'static,
    ) -> Result<Arc<Live<T>>, F> {
        let stamps = stamps(&files);
        let validity = files.first().and_then(|file| validity_of(file));
        let seen = Observation { stamps, validity, failed: None };
        let make: Make<T> = Box::new(move || make().map_err(Into::into));
        let live = Arc::new(Live::new(first()?, (files, seen), make));
        let weak = Arc::downgrade(&live);
        WATCHED.lock().unwrap_or_else(PoisonError::into_inner).push(weak);
        THREAD.call_once(start);
        Ok(live)
    }

    /// What is made of no file, and stays.
    pub fn fixed(value: T) -> Arc<Live<T>> {
        let make: Make<T> = Box::new(|| Err("it is made of no file".into()));
        Arc::new(Live::new(value, (Vec::new(), Observation::default()), make))
    }

    fn new(first: T, (files, seen): (Vec<PathBuf>, Observation), make: Make<T>) -> Live<T> {
        Live { current: RwLock::new(Arc::new(first)), files, seen: Mutex::new(seen), make }
    }

    fn seen(&self) -> MutexGuard<'_, Observation> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What was made last.
    pub fn current(&self) -> Arc<T> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<T: Send + Sync + 'static> Reload for Live<T> {
    fn reload(&self, forced: bool) {
        let stamps = stamps(&self.files);
        let mut seen = self.seen();
        let is_new = seen.stamps != stamps || forced;
        let failed = seen.failed.clone();
        if !is_new && failed.is_none() {
            return;
        }
        // A file that changes from here on has another stamp at the next look.
        seen.stamps = stamps;
        drop(seen);
        let path = self.certificate().unwrap_or(Path::new(""));
        let (validity, file) = (validity_of(path), path.display());
        match (self.make)() {
            Ok(made) => {
                *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(made);
                let mut seen = self.seen();
                (seen.validity, seen.failed) = (validity, None);
                tracing::info!(%file, "the TLS files were read again");
            }
            Err(error) => {
                let error = error.to_string();
                if is_new || failed.as_ref() != Some(&error) {
                    tracing::error!(%file, %error, "the TLS files cannot be used: the previous ones stay in use");
                }
                self.seen().failed = Some(error);
            }
        }
    }

    fn certificate(&self) -> Option<&Path> {
        self.files.first().map(PathBuf::as_path)
    }

    fn in_use(&self) -> InUse {
        let seen = self.seen();
        InUse { validity: seen.validity, failed: seen.failed.is_some() }
    }
}

/// What is known about a certificate's file: of all that was made of it, the earliest end. If nothing
/// was, what the file says.
pub(super) fn in_use_of(certificate: &Path) -> InUse {
    let is_its = |live: &Arc<dyn Reload>| live.certificate() == Some(certificate);
    let all = in_use().into_iter().filter(is_its).map(|live| live.in_use());
    let merged = all.reduce(|one, other| InUse {
        validity: [one.validity, other.validity].into_iter().flatten().min_by_key(|of| of.1),
        failed: one.failed || other.failed,
    });
    merged.unwrap_or_else(|| InUse { validity: validity_of(certificate), failed: false })
}

fn stamps(files: &[PathBuf]) -> Vec<Stamp> {
    files.iter().map(|file| stamp(file)).collect()
}

fn stamp(file: &Path) -> Stamp {
    let known = std::fs::metadata(file).ok()?;
    Some((known.ino(), known.size(), known.modified().ok()?))
}

/// Has all files read again at once.
pub(super) fn ask() {
    *ASKED.0.lock().unwrap_or_else(PoisonError::into_inner) = true;
    ASKED.1.notify_all();
}

/// Starts the thread that looks at the files. Without it the process continues with the files that it has.
fn start() {
    let thread = std::thread::Builder::new().name("certificates".into());
    if let Err(error) = thread.spawn(watch) {
        tracing::error!(%error, "changed TLS files will not be noticed");
    }
}

fn watch() {
    let mut warned = BTreeMap::new();
    loop {
        let asked = ASKED.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ASKED.1.wait_timeout_while(asked, INTERVAL, |asked| !*asked);
        let (mut asked, _) = waited.unwrap_or_else(PoisonError::into_inner);
        let forced = std::mem::take(&mut *asked);
        drop(asked);
        let _looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
        for live in in_use() {
            live.reload(forced);
            if let Some(file) = live.certificate() {
                expiry::warn(file, live.in_use().validity, &mut warned);
            }
        }
    }
}

/// Forgets the files of a folder, which is about to be removed. Connections already configured from
/// them stay in use.
pub(super) fn forget(folder: &Path) {
    let _not_looking = LOOKING.lock().unwrap_or_else(PoisonError::into_inner);
    let is_in = |live: &Arc<dyn Reload>| {
        live.certificate().is_some_and(|certificate| certificate.starts_with(folder))
    };
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.retain(|live| live.upgrade().is_some_and(|live| !is_in(&live)));
}

/// What is still in use; the rest is forgotten.
fn in_use() -> Vec<Arc<dyn Reload>> {
    let mut watched = WATCHED.lock().unwrap_or_else(PoisonError::into_inner);
    watched.retain(|live| live.strong_count() > 0);
    watched.iter().filter_map(Weak::upgrade).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_file_is_read_again_and_a_bad_one_changes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("number");
        std::fs::write(&file, "1").unwrap();
        let read = {
            let file = file.clone();
            move || std::fs::read_to_string(&file).unwrap().parse::<u32>()
        };
        let files = vec![file.clone()];
        let seen = Observation { stamps: stamps(&files), ..Observation::default() };
        let live = Live::new(1, (files, seen), Box::new(move || read().map_err(Into::into)));
        for (text, expected) in [("22", 22), ("none", 22), ("333", 333)] {
            std::fs::write(&file, text).unwrap();
            live.reload(false);
            assert_eq!(*live.current(), expected, "{text}");
        }
        *live.current.write().unwrap() = Arc::new(4);
        live.reload(false);
        assert_eq!(*live.current(), 4, "nothing has changed");
        live.reload(true);
        assert_eq!(*live.current(), 333);
    }

    #[test]
    fn what_failed_is_shown_and_tried_again_with_the_same_files() {
        let folder = tempfile::tempdir().unwrap();
        let (file, beside) = (folder.path().join("number"), folder.path().join("beside"));
        std::fs::write(&file, "1").unwrap();
        let read = {
            let beside = beside.clone();
            move || std::fs::read_to_string(&beside)
        };
        let live = Live::watching(vec![file.clone()], || Ok::<_, &str>("1".into()), read).unwrap();
        assert!(!in_use_of(&file).failed);
        std::fs::write(&file, "22").unwrap();
        live.reload(false);
        assert!(in_use_of(&file).failed && *live.current() == "1");
        std::fs::write(&beside, "2").unwrap();
        live.reload(false);
        assert!(!in_use_of(&file).failed && *live.current() == "2");
    }

    #[test]
    fn a_folder_that_is_removed_is_forgotten() {
        let folder = tempfile::tempdir().unwrap();
        let watched = |name: &str| {
            let file = folder.path().join(name).join("tls.pem");
            Live::watching(vec![file], || Ok::<u8, &str>(1), || Ok::<u8, &str>(2)).unwrap()
        };
        let (gone, kept) = (watched("gone"), watched("kept"));
        forget(&folder.path().join("gone"));
        let looks_at = |live: &Arc<Live<u8>>| {
            in_use().iter().any(|other| other.certificate() == live.certificate())
        };
        assert!(!looks_at(&gone) && looks_at(&kept));
    }
}
