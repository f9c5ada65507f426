//! A source that reads one message per line.

use std::path::{Path, PathBuf};

use futures_util::future::BoxFuture;
use tokio::fs::File;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader};

use super::json::parse_message;
use super::service::{Source, SourceItem, SourceMessage};

/// Maximum length of a line, in bytes.
const LINE_MAX: u64 = 64 * 1024 * 1024;

/// A file of messages in JSON ([`parse_message`]), one per line. Empty lines are skipped. The
/// position is the number of lines read.
pub struct Jsonl {
    path: PathBuf,
    file: Option<BufReader<File>>,
    line: u64,
    from: u64,
}

// === impl Jsonl ===

impl Jsonl {
    /// Reads `path`, which is opened when the first message is read.
    pub fn new(path: &Path) -> Self {
        Self {
            path: path.to_owned(),
            file: None,
            line: 0,
            from: 0,
        }
    }

    async fn read(&mut self) -> Option<Result<SourceMessage, String>> {
        loop {
            let text = match self.read_line().await {
                Ok(text) => text?,
                Err(why) => return Some(Err(why)),
            };
            if self.line <= self.from || text.iter().all(u8::is_ascii_whitespace) {
                continue;
            }
            let at = format!("{}:{}", self.path.display(), self.line);
            let parsed = parse_message(&text).map(|message| SourceMessage {
                next: self.line,
                ..message
            });
            return Some(parsed.map_err(|why| format!("{at}: {why}")));
        }
    }

    async fn read_line(&mut self) -> Result<Option<Vec<u8>>, String> {
        let failed = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                let file = File::open(&self.path).await;
                let file = file.map_err(|error| failed(&self.path, error))?;
                self.file.insert(BufReader::new(file))
            }
        };
        let mut text = Vec::new();
        let read = file.take(LINE_MAX).read_until(b'\n', &mut text).await;
        match read.map_err(|error| failed(&self.path, error))? {
            0 => return Ok(None),
            count if count as u64 == LINE_MAX => {
                let at = self.line + 1;
                return Err(format!(
                    "{}:{at}: the line is longer than {LINE_MAX} bytes",
                    self.path.display()
                ));
            }
            _ => self.line += 1,
        }
        Ok(Some(text))
    }
}

impl Source for Jsonl {
    fn seek(&mut self, position: u64) -> Result<(), String> {
        self.from = position;
        Ok(())
    }

    fn next(&mut self) -> BoxFuture<'_, Option<Result<SourceItem, String>>> {
        Box::pin(async { Some(self.read().await?.map(SourceItem::Message)) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn reads_blocks_and_spans_and_goes_on_where_it_was() {
        let dir = tempfile::tempdir().expect("temporary directory");
        let path = dir.path().join("blocks.jsonl");
        let text = "{\"block\":1,\"payload\":{\"a\":1}}\n\n\
                    {\"first\":2,\"last\":4,\"part\":\"x\",\"payload\":[2]}\n{\"payload\":1}\n";
        std::fs::write(&path, text).expect("written");
        let mut source = Jsonl::new(&path);
        let one = source.read().await.expect("a message").expect("valid");
        assert_eq!(
            (one.first, one.last, &*one.bytes),
            (1, 1, &b"{\"a\":1}"[..])
        );
        let two = source.read().await.expect("a message").expect("valid");
        assert_eq!(
            (two.first, two.last, two.part.as_str(), two.next),
            (2, 4, "x", 3)
        );
        let bad = source
            .read()
            .await
            .expect("a message")
            .expect_err("no block");
        assert!(bad.contains("blocks.jsonl:4: give either `block`"), "{bad}");
        assert!(source.read().await.is_none());

        let mut source = Jsonl::new(&path);
        source.seek(one.next).expect("a position");
        let again = source.read().await.expect("a message").expect("valid");
        assert_eq!(again.first, 2);
    }
}
