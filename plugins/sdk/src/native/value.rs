//! Values of settings.

/// The value of a setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// Of an [`IntegerSetting`](crate::IntegerSetting).
    Integer(i64),
    /// Of a [`BooleanSetting`](crate::BooleanSetting).
    Boolean(bool),
    /// Of a [`TextSetting`](crate::TextSetting).
    Text(String),
}

impl Value {
    /// What it is, for errors.
    pub(crate) fn kind(&self) -> &'static str {
        match self {
            Value::Integer(_) => "an integer",
            Value::Boolean(_) => "a boolean",
            Value::Text(_) => "a text",
        }
    }
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Value::Integer(value)
    }
}

impl From<bool> for Value {
    fn from(value: bool) -> Self {
        Value::Boolean(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Value::Text(value.to_owned())
    }
}
