//! Files of an index: written whole and synchronised, read whole and compared with their checksum.
//!
//! The catalogue has the length and the checksum of each file, so that nothing is used before its
//! file is known to be whole. Files that are read in parts are in `blocks`.

use super::IndexError;
use crate::hashing::Checksum;
use crate::trace::{FileState, StopFlag, decompressed};
use flowsieve_engine::internal::{Reservation, Shown};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes read at a time: they are in the processor's caches when their checksum is computed.
const BUFFER: usize = 1 << 17;

/// Ending of a file's name until the file replaces another one.
const TEMPORARY: &str = ".new";

/// Damage of bytes with a wrong checksum.
pub(super) const OTHER_CHECKSUM: &str = "its checksum is another one";

/// A number that no other index has; a copy of the index has the same.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct IndexId(u128);

impl IndexId {
    pub(super) fn random() -> Result<Self, IndexError> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            IndexError::Refused(format!("the system has no random numbers for an index: {error}"))
        })?;
        Ok(Self(u128::from_le_bytes(bytes)))
    }

    /// Returns its 32 hexadecimal digits.
    pub(super) fn text(self) -> String {
        format!("{:032x}", self.0)
    }
}

impl Serialize for IndexId {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.serialize_str(&self.text())
    }
}

impl<'de> Deserialize<'de> for IndexId {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Self, D::Error> {
        let text = String::deserialize(input)?;
        let is_digit = |byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let number = u128::from_str_radix(&text, 16);
        let is_id = text.len() == 32 && text.bytes().all(is_digit);
        number.ok().filter(|_| is_id).map(Self).ok_or_else(|| {
            D::Error::custom(format!("{text:?} is not the id of an index: it has 32 digits"))
        })
    }
}

/// Length and checksum of a file.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub struct FileMark {
    /// Bytes.
    pub bytes: u64,
    /// XXH3 of 64 bits.
    pub checksum: u64,
}

impl FileMark {
    pub(super) fn new(bytes: &[u8]) -> Self {
        let mut checksum = Checksum::new();
        checksum.update(bytes);
        Self { bytes: bytes.len() as u64, checksum: checksum.value() }
    }

    /// Checks the length of a file that should have this mark.
    pub(super) fn check_length(self, path: &Path, found: u64) -> Result<(), IndexError> {
        if found == self.bytes {
            return Ok(());
        }
        let reason = format!("it has {found} bytes and should have {}", self.bytes);
        Err(IndexError::damaged(path, reason))
    }
}

/// Notes a change of the disk that comes next. Tests see the order of all changes, which decides what
/// a power failure leaves, and refuse some.
#[cfg(not(test))]
#[allow(clippy::unnecessary_wraps, reason = "tests refuse some")]
fn step(_: &'static str, _: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
use super::order_tests::step;

/// Makes a file, which must not exist.
pub(super) fn create(path: &Path) -> io::Result<File> {
    step("create", path)?;
    File::create_new(path)
}

/// Makes a folder and its missing parents, and syncs their names to the disk.
pub(super) fn create_folder(folder: &Path) -> Result<(), IndexError> {
    let is_new = |folder: &&Path| !folder.as_os_str().is_empty() && !folder.exists();
    let new: Vec<&Path> = folder.ancestors().take_while(is_new).collect();
    fs::create_dir_all(folder).map_err(IndexError::io(folder))?;
    new.iter().filter_map(|new| new.parent()).try_for_each(|above| {
        let above = if above.as_os_str().is_empty() { Path::new(".") } else { above };
        // A folder with write but no read permission cannot be opened to sync it.
        let refused = File::open(above).err().map(|error| error.kind());
        if refused == Some(ErrorKind::PermissionDenied) { Ok(()) } else { sync_folder(above) }
    })
}

/// Waits until a file or a folder is on the disk.
pub(super) fn sync(path: &Path) -> io::Result<()> {
    step("sync", path)?;
    File::open(path)?.sync_all()
}

/// Returns the device of a file or folder and its number there, where the system has them.
pub(super) fn id_of(data: &fs::Metadata) -> (u64, u64) {
    #[cfg(unix)]
    let id = {
        use std::os::unix::fs::MetadataExt as _;
        (data.dev(), data.ino())
    };
    #[cfg(not(unix))]
    let id = (0, u64::from(data.is_dir()));
    id
}

/// Returns `None` if there is no such file or folder.
pub(super) fn if_there<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        result => result.map(Some),
    }
}

/// Deletes a file.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    step("delete", path)?;
    fs::remove_file(path)
}

/// Puts a file in the place of another one: readers see the old one or the new one. Until then its
/// name has the number of the index, which nothing else has.
pub(super) fn replace(
    folder: &Path,
    name: &str,
    id: IndexId,
    bytes: &[u8],
) -> Result<(), IndexError> {
    let (path, temporary) =
        (folder.join(name), folder.join(format!("{name}.{}{TEMPORARY}", id.text())));
    let write = || {
        // Never writes to a file that a killed writer left: it may have another link.
        if_there(fs::remove_file(&temporary))?;
        let written = create(&temporary).and_then(|mut file| file.write_all(bytes));
        let written = written.and_then(|()| sync(&temporary));
        let renamed = written
            .and_then(|()| step("rename", &path))
            .and_then(|()| fs::rename(&temporary, &path));
        renamed.inspect_err(|_| {
            let _ = fs::remove_file(&temporary);
        })
    };
    write().map_err(IndexError::io(&path))?;
    sync_folder(folder)
}

/// Whether a file has a name that this one of some index has until it is complete.
pub(super) fn is_temporary(file: &str, name: &str) -> bool {
    let rest = file.strip_prefix(name).and_then(|rest| rest.strip_prefix('.'));
    let id = rest.and_then(|rest| rest.strip_suffix(TEMPORARY));
    id.is_some_and(|id| id.len() == 32 && id.bytes().all(|digit| digit.is_ascii_hexdigit()))
}

/// Somebody else's file has the name of one of the index.
pub(super) fn not_made(path: &Path) -> IndexError {
    let reason = "the index makes a file of this name, and there is one that it did not make; move it elsewhere";
    IndexError::io(path)(io::Error::new(ErrorKind::AlreadyExists, reason))
}

/// Waits until the names in a folder are on the disk.
pub(super) fn sync_folder(folder: &Path) -> Result<(), IndexError> {
    if cfg!(unix) { sync(folder).map_err(IndexError::io(folder)) } else { Ok(()) }
}

/// Refuses everything but regular files: opening a pipe waits for its other end, and a link leads to
/// files of others.
pub(super) fn check_file(path: &Path) -> Result<(), IndexError> {
    match fs::symlink_metadata(path) {
        Ok(data) if data.is_file() => Ok(()),
        Ok(_) => Err(IndexError::damaged(path, "it is not a regular file")),
        // Opening it says what is wrong.
        Err(_) => Ok(()),
    }
}

/// Opens a file of an index for reading.
pub(super) fn open(path: &Path) -> Result<File, IndexError> {
    check_file(path)?;
    File::open(path).map_err(IndexError::io(path))
}

/// Reads all of a file of an index, which has `most` bytes at most: a hole in a file takes no room
/// on the disk, but does in memory.
pub(super) fn read(path: &Path, most: u64) -> Result<Vec<u8>, IndexError> {
    let file = open(path)?;
    let length = file.metadata().map_err(IndexError::io(path))?.len();
    if length > most {
        let reason = format!("it has {length} bytes, and {most} are the most");
        return Err(IndexError::damaged(path, reason));
    }
    let mut bytes = room_for(path, length)?;
    // A file that grows is written by another program.
    file.take(length).read_to_end(&mut bytes).map_err(IndexError::io(path))?;
    Ok(bytes)
}

/// Returns a vector with room for this many bytes of a file.
pub(super) fn room_for(path: &Path, bytes: u64) -> Result<Vec<u8>, IndexError> {
    let mut room = Vec::new();
    let reserved = usize::try_from(bytes).map(|bytes| room.try_reserve_exact(bytes));
    match reserved {
        Ok(Ok(())) => Ok(room),
        _ => Err(IndexError::Refused(format!(
            "{}: reading this file of the index takes {bytes} bytes of memory, which the system does not give",
            path.shown()
        ))),
    }
}

/// Asks for the memory that a library takes without asking while it reads files of this folder.
pub(super) fn reserve(folder: &Path, bytes: u64) -> Result<Reservation, IndexError> {
    Reservation::new(bytes).ok_or_else(|| {
        IndexError::Refused(format!(
            "{}: the system gives too little memory to read what is in this folder of the index; allow more of it (ulimit -v)",
            folder.shown()
        ))
    })
}

/// Reads a file that should have this mark.
pub(super) fn read_checked(path: &Path, mark: FileMark) -> Result<Vec<u8>, IndexError> {
    check_file(path)?;
    let length = fs::metadata(path).map_err(IndexError::io(path))?.len();
    mark.check_length(path, length)?;
    let bytes = read(path, mark.bytes)?;
    if FileMark::new(&bytes) != mark {
        return Err(IndexError::damaged(path, OTHER_CHECKSUM));
    }
    Ok(bytes)
}

/// Digest and length of a capture's content; `None` if the flag was set before its end.
pub(super) type Content = Option<(String, u64)>;

/// Returns the state of the file at this path, or `None` if it is unknown.
pub(super) fn state_of(path: &Path) -> Option<FileState> {
    fs::metadata(path).ok().map(|data| FileState::of(&data))
}

/// Returns whether the bytes have changed since: it is another file, or shorter, or was written to
/// and is as long. A longer file, or one whose names or rights changed, may have the same bytes.
pub(super) fn has_changed(before: FileState, path: &Path) -> bool {
    state_of(path).is_none_or(|now| now != before && !now.has_grown(before))
}

/// A capture whose content is digested while it is read; copies of it read on together.
#[derive(Clone)]
pub(super) struct DigestedFile(Arc<Mutex<Digested>>);

struct Digested {
    file: Box<dyn Read + Send>,
    digest: blake3::Hasher,
    length: u64,
    /// Bytes that are digested at most: what is appended meanwhile is not.
    most: u64,
}

impl DigestedFile {
    /// Opens a capture, of which up to `most` bytes are digested.
    pub(super) fn open(path: &Path, most: u64) -> Result<Self, IndexError> {
        let file = File::open(path).map_err(IndexError::io(path))?;
        Ok(Self::new(Box::new(file), most))
    }

    fn new(file: Box<dyn Read + Send>, most: u64) -> Self {
        let digested = Digested { file, digest: blake3::Hasher::new(), length: 0, most };
        Self(Arc::new(Mutex::new(digested)))
    }

    /// Reads what is left and returns the content.
    pub(super) fn content(&self, path: &Path, stop: &StopFlag) -> Result<Content, IndexError> {
        let mut it = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut buffer = vec![0; BUFFER];
        while it.length < it.most {
            match it.read(&mut buffer) {
                _ if stop.is_set() => return Ok(None),
                Ok(0) => break,
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(IndexError::io(path)(error)),
            }
        }
        Ok(Some((it.digest.finalize().to_hex().to_string(), it.length)))
    }
}

impl Digested {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(target)?;
        let digested = (self.most - self.length).min(read as u64);
        self.digest.update(&target[..digested as usize]);
        self.length += digested;
        Ok(read)
    }
}

impl Read for DigestedFile {
    fn read(&mut self, target: &mut [u8]) -> io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).read(target)
    }
}

/// Returns BLAKE3 of what a compressed file holds, in hexadecimal, and its length, of which no more
/// than `most` bytes count.
pub(super) fn content_inside(
    path: &Path,
    most: u64,
    stop: &StopFlag,
) -> Result<Content, IndexError> {
    let file = File::open(path).map_err(IndexError::io(path))?;
    DigestedFile::new(Box::new(decompressed(file)), most).content(path, stop)
}

/// Returns BLAKE3 of a file, in hexadecimal, and its length.
pub(super) fn content_of(path: &Path, stop: &StopFlag) -> Result<Content, IndexError> {
    DigestedFile::open(path, u64::MAX)?.content(path, stop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_file_has_changed_if_it_was_written_to_but_not_if_it_has_another_name() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        fs::write(&path, b"first").unwrap();
        let state = state_of(&path).unwrap();
        fs::hard_link(&path, folder.path().join("copy")).unwrap();
        assert!(!has_changed(state, &path));
        let file = File::options().append(true).open(&path).unwrap();
        (&file).write_all(b" and more").unwrap();
        assert!(!has_changed(state, &path));
        file.set_len(5).unwrap();
        file.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
        assert!(has_changed(state, &path));
        file.set_len(4).unwrap();
        assert!(state_of(&path).is_some() && has_changed(state, &path));
        fs::remove_file(&path).unwrap();
        assert!(has_changed(state, &path));
    }

    #[test]
    fn the_content_of_a_file_is_the_same_however_much_of_it_was_read_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture");
        let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at ^ at >> 8) as u8).collect();
        fs::write(&path, &bytes).unwrap();
        let digest = blake3::hash(&bytes[..200_000]).to_hex().to_string();
        for read in [0, 1, 199_999, 200_000, 300_000] {
            let file = DigestedFile::open(&path, 200_000).unwrap();
            let mut before = Vec::new();
            file.clone().take(read).read_to_end(&mut before).unwrap();
            assert_eq!(before, bytes[..read as usize]);
            let content = file.content(&path, &StopFlag::default()).unwrap();
            assert_eq!(content, Some((digest.clone(), 200_000)), "{read}");
        }
    }

    /// A product of two halves of a word is zero if one of them equals XXH3's public secret; then
    /// only the sum of the words counts.
    #[test]
    fn contents_made_for_one_checksum_have_two_digests() {
        let folder = tempfile::tempdir().unwrap();
        let content = |first: u32, second: u32| {
            let mut bytes = vec![0; 1024];
            bytes[24..28].copy_from_slice(&[0x72, 0x40, 0xa4, 0xa4]);
            bytes[28..32].copy_from_slice(&first.to_le_bytes());
            bytes[88..92].copy_from_slice(&[0xcb, 0x79, 0xe6, 0x4e]);
            bytes[92..96].copy_from_slice(&second.to_le_bytes());
            let path = folder.path().join("capture");
            fs::write(&path, &bytes).unwrap();
            (Checksum::of(&bytes), content_of(&path, &StopFlag::default()).unwrap())
        };
        let (first, second) = (content(1000, 20), content(1019, 1));
        assert_eq!(first.0, second.0);
        assert_ne!(first.1, second.1);
    }
}
