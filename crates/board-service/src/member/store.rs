//! A member's files: messages that wait, the write of each epoch that has not ended, and what became
//! of messages. Every change is one rename, so a crash leaves the file before or after it.

use alpheus_anonymous_board::configuration::{Board, Epoch};
use alpheus_anonymous_board::messages::{Receipt, Submission};
use alpheus_anonymous_board::writer::PendingWrite;
use alpheus_crypto::secret::Secret;
use alpheus_crypto::signed_message::Signed;
use alpheus_node::clock;
use alpheus_node::entropy;
use alpheus_node::failure::{Blame, Category, Failure};
use alpheus_node::files::{Readers, check_private_folder, make_private_folder, write_new};
use data_encoding::HEXLOWER;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::{Path, PathBuf};
use zeroize::{Zeroize, ZeroizeOnDrop, Zeroizing};

const QUEUE: &str = "queue";
const WRITES: &str = "writes";
const ENDED: &str = "ended";
/// A file that is not complete yet.
const PARTIAL: &str = "partial";

/// A message that waits.
#[derive(Serialize, Deserialize, Zeroize, ZeroizeOnDrop)]
pub struct Message {
    /// The text.
    pub text: Vec<u8>,
    /// How often it was in a table and was lost.
    pub lost: u32,
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Outcome {
    /// It is in the table of this epoch.
    Delivered(u64),
    /// It was lost in as many epochs as allowed, this one the last.
    Lost(u64),
    /// A server left its write out of this epoch, or may have read it alone. It must not be written
    /// again.
    Unsafe(u64),
}

/// The write of one epoch.
pub struct EpochWrite {
    /// The writer's record.
    pub written: PendingWrite,
    /// The submission.
    pub submission: Submission,
    /// The receipts so far.
    pub receipts: Vec<Option<Signed<Receipt>>>,
    /// The name of the message in it; none for a cover.
    pub message: Option<String>,
}

#[derive(Serialize, Deserialize)]
struct SavedEpochWrite {
    written: Zeroizing<Vec<u8>>,
    submission: Submission,
    receipts: Vec<Option<Signed<Receipt>>>,
    message: Option<String>,
}

/// A member's folder.
#[derive(Clone)]
pub struct MemberFolder(PathBuf);

/// A file of the folder is damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the file is damaged, or belongs to another board; move it away to continue without it")]
pub(crate) struct DamagedFileError;

impl MemberFolder {
    /// Opens the folder, and creates it if it does not exist.
    ///
    /// # Errors
    /// If it cannot be created, or others can look into it.
    pub fn open(folder: &Path) -> Result<Self, Failure> {
        if let Some(parent) = folder.parent() {
            fs::create_dir_all(parent).blame_io(parent)?;
        }
        for folder in [folder, &folder.join(QUEUE), &folder.join(WRITES), &folder.join(ENDED)] {
            if folder.exists() {
                check_private_folder(folder)?;
            } else {
                make_private_folder(folder)?;
            }
        }
        Ok(Self(folder.to_owned()))
    }

    /// Puts a message at the end of the queue.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn queue(&self, text: &[u8]) -> Result<(), Failure> {
        let salt: Secret<8> = Secret::random(&mut entropy::rng()?);
        let name = format!("{:020}-{}", clock::now().0, HEXLOWER.encode(salt.expose()));
        self.put_message(&name, &Message { text: text.to_vec(), lost: 0 })
    }

    /// Replaces a message in its place in the queue.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn put_message(&self, name: &str, message: &Message) -> Result<(), Failure> {
        self.put(QUEUE, name, message)
    }

    /// The names of the messages in the queue, the oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn queued(&self) -> Result<Vec<String>, Failure> {
        self.names(QUEUE)
    }

    /// A message. None if it is not in the queue.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn message(&self, name: &str) -> Result<Option<Message>, Failure> {
        self.get(QUEUE, name)
    }

    /// Takes a message out of the queue, and notes what became of it.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn end(&self, name: &str, outcome: Outcome) -> Result<(), Failure> {
        self.put(ENDED, name, &outcome)?;
        self.remove(QUEUE, name)
    }

    /// What became of messages, the oldest first.
    ///
    /// # Errors
    /// If a file cannot be read.
    pub fn ended(&self) -> Result<Vec<(String, Outcome)>, Failure> {
        let mut ended = Vec::new();
        for name in self.names(ENDED)? {
            if let Some(outcome) = self.get(ENDED, &name)? {
                ended.push((name, outcome));
            }
        }
        Ok(ended)
    }

    /// Keeps the write of an epoch. After this it may be sent.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep(&self, write: &EpochWrite) -> Result<(), Failure> {
        let saved = SavedEpochWrite {
            written: write.written.dangerous_to_bytes(),
            submission: write.submission.clone(),
            receipts: write.receipts.clone(),
            message: write.message.clone(),
        };
        self.put(WRITES, &number(write.written.epoch()), &saved)
    }

    /// The write of an epoch. None if there is none.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn write(&self, board: &Board, epoch: Epoch) -> Result<Option<EpochWrite>, Failure> {
        let Some(saved) = self.get::<SavedEpochWrite>(WRITES, &number(epoch))? else {
            return Ok(None);
        };
        let SavedEpochWrite { written, submission, receipts, message } = saved;
        let written = PendingWrite::from_bytes(board, &written)
            .ok_or(DamagedFileError)
            .blame_input(&self.0.join(WRITES).join(number(epoch)))?;
        Ok(Some(EpochWrite { written, submission, receipts, message }))
    }

    /// The epochs with a write, the oldest first.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub fn writes(&self) -> Result<Vec<Epoch>, Failure> {
        let names = self.names(WRITES)?.into_iter();
        Ok(names.filter_map(|name| name.parse().ok().map(Epoch)).collect())
    }

    /// Removes the write of an epoch that has ended.
    ///
    /// # Errors
    /// If it cannot be removed.
    pub fn forget(&self, epoch: Epoch) -> Result<(), Failure> {
        self.remove(WRITES, &number(epoch))
    }

    fn names(&self, part: &str) -> Result<Vec<String>, Failure> {
        let folder = self.0.join(part);
        let mut names = Vec::new();
        for entry in fs::read_dir(&folder).blame_io(&folder)? {
            let name = entry.blame_io(&folder)?.file_name().to_string_lossy().into_owned();
            if !name.ends_with(PARTIAL) {
                names.push(name);
            }
        }
        names.sort();
        Ok(names)
    }

    fn get<T: for<'de> Deserialize<'de>>(
        &self,
        part: &str,
        name: &str,
    ) -> Result<Option<T>, Failure> {
        let path = self.0.join(part).join(name);
        if !path.exists() {
            return Ok(None);
        }
        let bytes = Zeroizing::new(fs::read(&path).blame_io(&path)?);
        postcard::from_bytes(&bytes).map(Some).map_err(|_| DamagedFileError).blame_input(&path)
    }

    fn put<T: Serialize>(&self, part: &str, name: &str, value: &T) -> Result<(), Failure> {
        let folder = self.0.join(part);
        let (path, partial) = (folder.join(name), folder.join(format!("{name}.{PARTIAL}")));
        let bytes = Zeroizing::new(postcard::to_allocvec(value).blame(Category::Io)?);
        if partial.exists() {
            fs::remove_file(&partial).blame_io(&partial)?;
        }
        write_new(&partial, &*bytes, Readers::Owner)?;
        fs::rename(&partial, &path).blame_io(&path)?;
        sync(&folder)
    }

    fn remove(&self, part: &str, name: &str) -> Result<(), Failure> {
        let folder = self.0.join(part);
        let path = folder.join(name);
        if path.exists() {
            fs::remove_file(&path).blame_io(&path)?;
        }
        sync(&folder)
    }
}

/// Makes names in a folder durable.
fn sync(folder: &Path) -> Result<(), Failure> {
    fs::File::open(folder).and_then(|folder| folder.sync_all()).blame_io(folder)
}

fn number(epoch: Epoch) -> String {
    format!("{:020}", epoch.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    /// A message keeps its place while it is repeated, and ends once.
    #[test]
    fn messages_keep_their_order() {
        let folder = tempfile::tempdir().unwrap();
        let member = MemberFolder::open(&folder.path().join("a/member")).unwrap();
        for text in ["first", "second"] {
            member.queue(text.as_bytes()).unwrap();
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let names = member.queued().unwrap();
        let first = member.message(&names[0]).unwrap().unwrap();
        assert_eq!((first.text.as_slice(), first.lost), (b"first".as_slice(), 0));
        member.put_message(&names[0], &Message { text: b"first".to_vec(), lost: 1 }).unwrap();
        let again = MemberFolder::open(&folder.path().join("a/member")).unwrap();
        assert_eq!(again.queued().unwrap(), names);
        assert_eq!(again.message(&names[0]).unwrap().unwrap().lost, 1);
        again.end(&names[0], Outcome::Lost(7)).unwrap();
        assert_eq!(again.queued().unwrap(), names[1..]);
        assert_eq!(again.ended().unwrap(), [(names[0].clone(), Outcome::Lost(7))]);
    }

    /// Names in the queue say when a message was queued, and sizes of writes which of them have one.
    #[test]
    fn a_folder_that_others_can_look_into_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("member");
        MemberFolder::open(&path).unwrap();
        for inner in ["", QUEUE, WRITES, ENDED] {
            let inner = path.join(inner);
            let mode =
                |mode| fs::set_permissions(&inner, fs::Permissions::from_mode(mode)).unwrap();
            mode(0o755);
            assert!(MemberFolder::open(&path).is_err(), "{}", inner.display());
            mode(0o700);
        }
        MemberFolder::open(&path).unwrap();
    }
}
