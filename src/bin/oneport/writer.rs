//! Writing files: whole or not at all, through links, by one process at a time.
//!
//! A regular file is replaced: the new content goes into `.NAME.oneport-tmp` beside it, which is
//! then renamed. The file that a symbolic link leads to is the one that is replaced, and its mode
//! and owner are kept.
//!
//! The writer holds an advisory lock on the temporary file until it has become the file:
//! - another writer waits for it, so whoever reads the file with [`Writer::current`] first and then
//!   writes loses nothing of what the other has written;
//! - the system takes the lock away from a process that ends, however it ends: a temporary file
//!   with content that nobody holds is what a killed writer has left, and the next one removes it.
//!
//! Where a file cannot be replaced (it has other hard links, an owner that would change, a folder
//! without the right to create files), it is written in place, under a lock on itself.

use std::ffi::OsString;
use std::fmt;
use std::fs::{self, File, Metadata, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Seek, Write};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

/// How long a writer waits for another one: far longer than a file takes to be written, but a
/// process that was stopped holds its lock for ever.
const PATIENCE: Duration = Duration::from_secs(20);
/// How often it looks.
const INTERVAL: Duration = Duration::from_millis(5);
/// As many symbolic links one after another as the system follows.
const MAX_LINKS: usize = 40;

/// A file that is about to be written. Dropped without [`Writer::write`], it leaves everything as
/// it was.
#[derive(Debug)]
pub(crate) struct Writer {
    /// As the user names it.
    path: PathBuf,
    way: Way,
}

/// How a path is written to.
#[derive(Debug)]
enum Way {
    /// A regular file, absent or replaceable.
    Replace(Temporary),
    /// A regular file that is to keep its identity; locked.
    InPlace(File),
    /// A regular file that is this process's standard output or error: after what was printed
    /// there.
    Printed(Stream),
    /// A device or a pipe, or a file where none can be beside it.
    Direct,
}

#[derive(Debug, Clone, Copy)]
enum Stream {
    Output,
    Error,
}

/// A new file beside the one that it will become; locked, and removed when it is dropped.
#[derive(Debug)]
struct Temporary {
    path: PathBuf,
    file: File,
    becomes: PathBuf,
    /// Of what it replaces.
    mode: Option<Permissions>,
    renamed: bool,
}

/// Makes sure, before the work is done that they are for, that files can be written and that no two
/// are the same; each with the option that names it.
pub(crate) fn writable(outputs: &[(&str, Option<&Path>)]) -> Result<()> {
    let outputs = outputs
        .iter()
        .filter_map(|&(name, path)| Some((name, path?)));
    let outputs: Vec<_> = outputs.collect();
    for (i, &(option, path)) in outputs.iter().enumerate() {
        if path.as_os_str() == "-" {
            bail!("{option} writes a file: standard output has the text, or JSON with --json");
        }
        let mut before = outputs[..i].iter();
        if let Some((other, _)) = before.find(|(_, other)| is_same_file(other, path)) {
            bail!(
                "{other} and {option} name the same file, {}",
                path.display()
            );
        }
        Writer::open(path)?;
    }
    Ok(())
}

/// Writes a file.
pub(crate) fn write_file(path: &Path, content: &[u8]) -> Result<()> {
    Writer::open(path)?.write(content)
}

impl Writer {
    /// Prepares to write `path`, and waits for those who are writing it.
    pub(crate) fn open(path: &Path) -> Result<Writer> {
        Writer::open_within(path, PATIENCE)
    }

    fn open_within(path: &Path, patience: Duration) -> Result<Writer> {
        let way =
            way(path, patience).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Writer {
            path: path.to_path_buf(),
            way,
        })
    }

    /// What the file holds now: until this writer is dropped, no other changes it. Nothing if it is
    /// absent, or not a file that could be read back.
    pub(crate) fn current(&self) -> Result<Option<Vec<u8>>> {
        match &self.way {
            Way::Replace(Temporary { mode: None, .. }) | Way::Printed(_) | Way::Direct => Ok(None),
            Way::Replace(_) | Way::InPlace(_) => fs::read(&self.path)
                .map(Some)
                .with_context(|| format!("cannot read {}", self.path.display())),
        }
    }

    /// Writes the file.
    pub(crate) fn write(self, content: &[u8]) -> Result<()> {
        let Writer { path, way } = self;
        let written = match way {
            Way::Replace(temporary) => temporary.replace(content),
            Way::InPlace(file) => overwrite(&file, content),
            Way::Printed(Stream::Output) => io::stdout().write_all(content),
            Way::Printed(Stream::Error) => io::stderr().write_all(content),
            Way::Direct => fs::write(&path, content),
        };
        written.with_context(|| format!("cannot write {}", path.display()))
    }
}

fn way(path: &Path, patience: Duration) -> Result<Way> {
    let old = match fs::metadata(path) {
        Ok(old) if old.is_dir() => bail!("it is a folder"),
        // A pipe may be waiting for its one writer: it is opened only to be written.
        Ok(old) if !old.is_file() => return Ok(Way::Direct),
        Ok(old) => old,
        Err(e) if e.kind() == ErrorKind::NotFound => {
            let becomes = end_of_links(path)?;
            return match Temporary::create(&becomes, 0o666, patience) {
                Ok(temporary) => Ok(Way::Replace(temporary)),
                Err(e) if e.kind() == ErrorKind::PermissionDenied => Err(e.into()),
                Err(e) if cannot_be_beside(&e) => Ok(Way::Direct),
                Err(e) => Err(e.into()),
            };
        }
        Err(e) => return Err(e.into()),
    };
    if let Some(stream) = printed(&old) {
        return Ok(Way::Printed(stream));
    }
    // Who must not write to the file must not replace it either.
    let file = OpenOptions::new().write(true).open(path)?;
    // A link of the system's own (/proc/self/fd/3) may lead to a file that has no path any more.
    let becomes = fs::canonicalize(path).ok();
    let becomes = becomes.filter(|at| fs::metadata(at).is_ok_and(|at| is_same(&at, &old)));
    if let Some(becomes) = becomes.filter(|_| old.nlink() == 1) {
        match Temporary::create(&becomes, old.mode() & 0o777, patience) {
            Ok(temporary) => return Ok(Way::Replace(temporary)),
            Err(e) if cannot_be_beside(&e) => {}
            Err(e) => return Err(e.into()),
        }
    }
    lock(&file, patience)?;
    Ok(Way::InPlace(file))
}

/// Whether a temporary file that met this error cannot be there at all, however often it is tried.
fn cannot_be_beside(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        ErrorKind::PermissionDenied | ErrorKind::InvalidFilename | ErrorKind::Unsupported
    )
}

/// Where a path that leads nowhere ends: the file that its links would make.
fn end_of_links(path: &Path) -> io::Result<PathBuf> {
    let mut end = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let Ok(next) = fs::read_link(&end) else {
            break;
        };
        // Relative to the folder that the link is in.
        end.pop();
        end.push(next);
    }
    if end.as_os_str().as_encoded_bytes().ends_with(b"/") || end.file_name().is_none() {
        return Err(io::Error::new(ErrorKind::InvalidInput, "not a file name"));
    }
    Ok(end)
}

/// Whether two paths lead to one regular file, or would.
fn is_same_file(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| {
        let end = end_of_links(path).ok()?;
        let folder = match end.parent()? {
            here if here.as_os_str().is_empty() => Path::new("."),
            folder => folder,
        };
        Some(fs::canonicalize(folder).ok()?.join(end.file_name()?))
    };
    match (fs::metadata(a), fs::metadata(b)) {
        (Ok(a), Ok(b)) => a.is_file() && is_same(&a, &b),
        (Err(_), Err(_)) => a == b || place(a).is_some_and(|a| place(b) == Some(a)),
        _ => false,
    }
}

fn is_same(a: &Metadata, b: &Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Which of the standard streams the file is, if it is one of them.
fn printed(file: &Metadata) -> Option<Stream> {
    let is = |stream: io::Result<_>| {
        let stream = stream.and_then(|stream| File::from(stream).metadata());
        stream.is_ok_and(|stream| is_same(&stream, file))
    };
    if is(io::stdout().as_fd().try_clone_to_owned()) {
        Some(Stream::Output)
    } else if is(io::stderr().as_fd().try_clone_to_owned()) {
        Some(Stream::Error)
    } else {
        None
    }
}

/// Locks a file, where files can be locked.
fn lock(file: &File, patience: Duration) -> io::Result<()> {
    let start = Instant::now();
    loop {
        match try_lock(file) {
            Ok(false) => wait(start, patience, "it")?,
            Ok(true) => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Unsupported => return Ok(()),
            Err(e) => return Err(e),
        }
    }
}

/// Whether the lock was free; it is now held. [`ErrorKind::Unsupported`] where files cannot be
/// locked.
fn try_lock(file: &File) -> io::Result<bool> {
    match file.try_lock() {
        Ok(()) => Ok(true),
        Err(TryLockError::WouldBlock) => Ok(false),
        Err(TryLockError::Error(e)) => Err(io::Error::new(ErrorKind::Unsupported, e)),
    }
}

/// Waits a moment for another writer, which has locked `what`.
fn wait(start: Instant, patience: Duration, what: impl fmt::Display) -> io::Result<()> {
    if start.elapsed() < patience {
        std::thread::sleep(INTERVAL);
        return Ok(());
    }
    let seconds = patience.as_secs_f64();
    let message = format!(
        "another process has been writing the file for {seconds} s and holds {what} locked"
    );
    Err(io::Error::new(ErrorKind::TimedOut, message))
}

/// Writes a file where it is.
fn overwrite(mut file: &File, content: &[u8]) -> io::Result<()> {
    file.rewind()?;
    file.write_all(content)?;
    file.set_len(content.len() as u64)
}

impl Temporary {
    /// What will become `becomes`: a file of this mode or, if there is one already, one with its
    /// mode and owner.
    fn create(becomes: &Path, mode: u32, patience: Duration) -> io::Result<Temporary> {
        let mut name = OsString::from(".");
        name.push(becomes.file_name().unwrap_or_default());
        name.push(".oneport-tmp");
        let path = becomes.with_file_name(name);
        let mut temporary = Temporary {
            file: hold(&path, mode, patience)?,
            path,
            becomes: becomes.to_path_buf(),
            mode: None,
            renamed: false,
        };
        // Another may have written the file until now.
        if let Ok(old) = fs::metadata(becomes) {
            let mine = temporary.file.metadata()?;
            if (mine.uid(), mine.gid()) != (old.uid(), old.gid()) {
                fchown(&temporary.file, Some(old.uid()), Some(old.gid()))?;
            }
            temporary.mode = Some(old.permissions());
        }
        Ok(temporary)
    }

    fn replace(mut self, content: &[u8]) -> io::Result<()> {
        self.file.write_all(content)?;
        if let Some(mode) = self.mode.take() {
            self.file.set_permissions(mode)?;
        }
        fs::rename(&self.path, &self.becomes)?;
        self.renamed = true;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // The file is still locked: nobody else has one of this name.
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// A temporary file, empty and locked. Who has locked the file that has this name is the one who
/// writes; it need not be who has created it.
fn hold(path: &Path, mode: u32, patience: Duration) -> io::Result<File> {
    let start = Instant::now();
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    loop {
        let created = options.clone().create_new(true).mode(mode).open(path);
        let is_mine = created.is_ok();
        let file = match created {
            Err(e) if e.kind() == ErrorKind::AlreadyExists => match left(path, &options)? {
                Some(file) => file,
                None => continue,
            },
            created => created?,
        };
        let has_name = || {
            let named = fs::symlink_metadata(path);
            let held = file.metadata()?;
            Ok::<_, io::Error>(named.is_ok_and(|named| is_same(&named, &held)))
        };
        let is_locked = try_lock(&file).inspect_err(|_| {
            if is_mine {
                let _ = fs::remove_file(path);
            }
        })?;
        if !is_locked {
            wait(start, patience, path.display())?;
        } else if has_name()? {
            if file.metadata()?.len() == 0 {
                return Ok(file);
            }
            // A killed writer's.
            fs::remove_file(path)?;
        }
    }
}

/// The temporary file that is there, if it still is.
fn left(path: &Path, options: &OpenOptions) -> io::Result<Option<File>> {
    let in_the_way = |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()));
    match fs::symlink_metadata(path) {
        Ok(there) if !there.is_file() => {
            let message = format!("{} is in the way: it is not a file", path.display());
            return Err(io::Error::new(ErrorKind::AlreadyExists, message));
        }
        Ok(_) => {}
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(in_the_way(e)),
    }
    match options.open(path) {
        Ok(file) => Ok(Some(file)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(in_the_way(e)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_writer_that_never_ends_is_not_waited_for_for_ever() {
        let folder = std::env::temp_dir().join(format!("oneport-writer-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("r.json");
        let patience = Duration::from_millis(20);
        let first = Writer::open(&path).unwrap();
        let message = format!("{:#}", Writer::open_within(&path, patience).unwrap_err());
        for part in [
            "cannot write ",
            "r.json: another process has",
            ".r.json.oneport-tmp locked",
        ] {
            assert!(message.contains(part), "{message}");
        }
        // What the first writes, the second reads.
        first.write(b"first").unwrap();
        let second = Writer::open(&path).unwrap();
        assert_eq!(second.current().unwrap().as_deref(), Some(&b"first"[..]));
        drop(second);

        // In place, the lock is on the file itself.
        fs::hard_link(&path, folder.join("other")).unwrap();
        let first = Writer::open(&path).unwrap();
        assert!(matches!(first.way, Way::InPlace(_)));
        let message = format!("{:#}", Writer::open_within(&path, patience).unwrap_err());
        assert!(message.contains("r.json: another process has"), "{message}");
        first.write(b"1st").unwrap();
        let second = Writer::open(&folder.join("other")).unwrap();
        assert_eq!(second.current().unwrap().as_deref(), Some(&b"1st"[..]));
        drop(second);
        let left = fs::read_dir(&folder).unwrap().count();
        assert_eq!(left, 2);
        fs::remove_dir_all(&folder).unwrap();
    }
}
