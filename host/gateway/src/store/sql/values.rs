//! Converts values to and from PostgreSQL.

use std::{borrow::Cow, error::Error as StdError, fmt};

use bytes::BytesMut;
use rusqlite::{
    ToSql,
    types::{ToSqlOutput, ValueRef},
};
use tokio_postgres::{
    Row,
    types::{FromSql, IsNull, Type, to_sql_checked},
};

use super::{Error, Result};

/// A parameter of a statement.
pub(super) struct Given<'a>(ToSqlOutput<'a>);

impl<'a> Given<'a> {
    pub(super) fn of(value: &'a dyn ToSql) -> Result<Given<'a>> {
        Ok(Given(value.to_sql()?))
    }

    /// Returns an owned copy, which may be sent after its source is dropped.
    ///
    /// # Errors
    /// A text that is not UTF-8.
    pub(super) fn owned(&self) -> Result<Given<'static>> {
        let value = self.value().try_into().map_err(|why| rusqlite::Error::ToSqlConversionFailure(Box::new(why)))?;
        Ok(Given(ToSqlOutput::Owned(value)))
    }

    /// Returns its approximate size in bytes.
    pub(super) fn bytes(&self) -> usize {
        match self.value() {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => bytes.len(),
            ValueRef::Null | ValueRef::Integer(_) | ValueRef::Real(_) => 8,
        }
    }

    fn value(&self) -> ValueRef<'_> {
        match &self.0 {
            ToSqlOutput::Borrowed(value) => *value,
            ToSqlOutput::Owned(value) => ValueRef::from(value),
            // No statement gets other values.
            _ => ValueRef::Null,
        }
    }

    /// Returns its type; NULL fits any type.
    pub(super) fn type_(&self) -> Type {
        match self.value() {
            ValueRef::Null => Type::UNKNOWN,
            ValueRef::Integer(_) => Type::INT8,
            ValueRef::Real(_) => Type::FLOAT8,
            ValueRef::Text(_) => Type::TEXT,
            ValueRef::Blob(_) => Type::BYTEA,
        }
    }
}

impl PartialEq for Given<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.value() == other.value()
    }
}

/// Values may be people's texts, and are kept out of logs.
impl fmt::Debug for Given<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("…")
    }
}

impl tokio_postgres::types::ToSql for Given<'_> {
    fn to_sql(&self, _: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn StdError + Sync + Send>> {
        match self.value() {
            ValueRef::Null => return Ok(IsNull::Yes),
            ValueRef::Integer(number) => out.extend_from_slice(&number.to_be_bytes()),
            ValueRef::Real(number) => out.extend_from_slice(&number.to_be_bytes()),
            ValueRef::Text(text) => out.extend_from_slice(&without_nul(text)),
            ValueRef::Blob(bytes) => out.extend_from_slice(bytes),
        }
        Ok(IsNull::No)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

/// Replaces NUL, which PostgreSQL's texts cannot contain, by the replacement character.
pub(in crate::store) fn without_nul(text: &[u8]) -> Cow<'_, [u8]> {
    if !text.contains(&0) {
        return Cow::Borrowed(text);
    }
    let mut clean = Vec::with_capacity(text.len() + 2);
    for &byte in text {
        match byte {
            0 => clean.extend_from_slice("\u{fffd}".as_bytes()),
            byte => clean.push(byte),
        }
    }
    Cow::Owned(clean)
}

/// A column in its binary form.
struct Raw<'a>(Type, &'a [u8]);

impl<'a> FromSql<'a> for Raw<'a> {
    fn from_sql(type_: &Type, raw: &'a [u8]) -> Result<Self, Box<dyn StdError + Sync + Send>> {
        Ok(Raw(type_.clone(), raw))
    }

    fn accepts(_: &Type) -> bool {
        true
    }
}

/// Returns the value of a column.
pub(super) fn column(row: &Row, place: usize) -> Result<ValueRef<'_>> {
    let raw: Option<Raw<'_>> = row.try_get(place).map_err(Error::Postgres)?;
    let Some(Raw(type_, raw)) = raw else { return Ok(ValueRef::Null) };
    let odd = || Error::Column { name: row.columns()[place].name().to_owned(), why: format!("it is a {type_}") };
    Ok(match type_ {
        Type::BOOL => ValueRef::Integer(i64::from(raw.first() == Some(&1))),
        Type::INT2 => ValueRef::Integer(i16::from_be_bytes(raw.try_into().map_err(|_| odd())?).into()),
        Type::INT4 => ValueRef::Integer(i32::from_be_bytes(raw.try_into().map_err(|_| odd())?).into()),
        Type::INT8 => ValueRef::Integer(i64::from_be_bytes(raw.try_into().map_err(|_| odd())?)),
        Type::FLOAT8 => ValueRef::Real(f64::from_be_bytes(raw.try_into().map_err(|_| odd())?)),
        Type::BYTEA => ValueRef::Blob(raw),
        Type::TEXT | Type::VARCHAR | Type::NAME | Type::UNKNOWN => ValueRef::Text(raw),
        _ => return Err(odd()),
    })
}
