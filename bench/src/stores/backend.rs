//! A trait with the operations of a store, and its implementations for the three stores.

use std::path::Path;

use anyhow::Result;

/// A store of records by sequence number. A commit takes a group of records and one fsync.
pub(crate) trait Backend: Sized {
    fn open(dir: &Path) -> Result<Self>;
    fn commit(&mut self, puts: &[(u64, &[u8])], deletes: &[u64]) -> Result<()>;
    /// The sequence number and the length of every record, in order.
    fn scan(&self) -> Result<Vec<(u64, usize)>>;
}

pub(crate) struct Redb(redb::Database);
pub(crate) struct Fjall {
    db: fjall::Database,
    records: fjall::Keyspace,
}
pub(crate) struct Sqlite(rusqlite::Connection);

const RECORDS: redb::TableDefinition<'_, u64, &[u8]> = redb::TableDefinition::new("records");

// === impl Redb ===

impl Backend for Redb {
    fn open(dir: &Path) -> Result<Self> {
        let db = redb::Database::create(dir.join("log.redb"))?;
        let tx = db.begin_write()?;
        tx.open_table(RECORDS)?;
        tx.commit()?;
        Ok(Self(db))
    }

    fn commit(&mut self, puts: &[(u64, &[u8])], deletes: &[u64]) -> Result<()> {
        let tx = self.0.begin_write()?;
        {
            let mut table = tx.open_table(RECORDS)?;
            for (seq, value) in puts {
                table.insert(seq, value)?;
            }
            for seq in deletes {
                table.remove(seq)?;
            }
        }
        tx.commit()?;
        Ok(())
    }

    fn scan(&self) -> Result<Vec<(u64, usize)>> {
        use redb::{ReadableDatabase, ReadableTable};
        let tx = self.0.begin_read()?;
        let table = tx.open_table(RECORDS)?;
        let mut found = Vec::new();
        for row in table.iter()? {
            let (seq, value) = row?;
            found.push((seq.value(), value.value().len()));
        }
        Ok(found)
    }
}

// === impl Fjall ===

impl Backend for Fjall {
    fn open(dir: &Path) -> Result<Self> {
        let db = fjall::Database::builder(dir.join("log.fjall")).open()?;
        let records = db.keyspace("records", fjall::KeyspaceCreateOptions::default)?;
        Ok(Self { db, records })
    }

    fn commit(&mut self, puts: &[(u64, &[u8])], deletes: &[u64]) -> Result<()> {
        let mut batch = self
            .db
            .batch()
            .durability(Some(fjall::PersistMode::SyncData));
        for (seq, value) in puts {
            batch.insert(&self.records, seq.to_be_bytes(), *value);
        }
        for seq in deletes {
            batch.remove(&self.records, seq.to_be_bytes());
        }
        batch.commit()?;
        Ok(())
    }

    fn scan(&self) -> Result<Vec<(u64, usize)>> {
        let mut found = Vec::new();
        for row in self.records.iter() {
            let (key, value) = row.into_inner()?;
            found.push((u64::from_be_bytes(key.as_ref().try_into()?), value.len()));
        }
        Ok(found)
    }
}

// === impl Sqlite ===

impl Backend for Sqlite {
    fn open(dir: &Path) -> Result<Self> {
        let db = rusqlite::Connection::open(dir.join("log.sqlite"))?;
        db.pragma_update(None, "journal_mode", "WAL")?;
        db.pragma_update(None, "synchronous", "FULL")?;
        db.execute_batch(
            "CREATE TABLE IF NOT EXISTS records (seq INTEGER PRIMARY KEY, value BLOB NOT NULL)",
        )?;
        Ok(Self(db))
    }

    fn commit(&mut self, puts: &[(u64, &[u8])], deletes: &[u64]) -> Result<()> {
        let tx = self.0.transaction()?;
        {
            let mut insert = tx.prepare_cached("INSERT INTO records VALUES (?, ?)")?;
            for (seq, value) in puts {
                insert.execute((i64::try_from(*seq)?, value))?;
            }
            let mut delete = tx.prepare_cached("DELETE FROM records WHERE seq = ?")?;
            for seq in deletes {
                delete.execute([i64::try_from(*seq)?])?;
            }
        }
        tx.commit()?;
        Ok(())
    }

    fn scan(&self) -> Result<Vec<(u64, usize)>> {
        let mut select = self
            .0
            .prepare("SELECT seq, value FROM records ORDER BY seq")?;
        let rows = select.query_map([], |row| {
            Ok((
                row.get::<_, i64>(0)?.cast_unsigned(),
                row.get_ref(1)?.as_blob()?.len(),
            ))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}
