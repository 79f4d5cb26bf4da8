//! `Column`: a column of a table, its numbers handed to numpy without a copy.

use airloom_record::{Column, Values};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods as _};
use pyo3::prelude::*;
use pyo3::types::PyList;

/// A column of a table.
#[pyclass(name = "Column", module = "airloom._core", frozen)]
pub struct PyColumn {
    /// Its name.
    #[pyo3(get)]
    name: &'static str,
    /// A numpy array, or a list of texts; indices into `names` if that is not `None`.
    #[pyo3(get)]
    values: Py<PyAny>,
    /// The texts that the values are indices of.
    #[pyo3(get)]
    names: Option<Vec<String>>,
    /// Is there a value in each row? `None`: always.
    #[pyo3(get)]
    valid: Option<Py<PyAny>>,
}

/// Any numbers as a numpy array that owns them.
macro_rules! array {
    ($py:expr, $numbers:expr) => {
        $numbers.into_pyarray($py).into_any().unbind()
    };
}

impl PyColumn {
    /// Takes a column over.
    pub fn new(py: Python<'_>, column: Column) -> PyResult<Self> {
        let mut names = None;
        let values = match column.values {
            Values::I64(v) => array!(py, v),
            Values::U64(v) => array!(py, v),
            Values::U32(v) => array!(py, v),
            Values::U16(v) => array!(py, v),
            Values::U8(v) => array!(py, v),
            Values::F64(v) => array!(py, v),
            Values::Text(v) => PyList::new(py, v)?.into_any().unbind(),
            Values::Category { codes, names: texts } => {
                names = Some(texts);
                array!(py, codes)
            }
        };
        let valid = column.valid.map(|v| array!(py, v));
        Ok(PyColumn { name: column.name, values, names, valid })
    }

    /// The column again, as a copy.
    pub fn column(&self, py: Python<'_>) -> PyResult<Column> {
        let values = self.values.bind(py);
        macro_rules! numbers {
            ($($kind:ident),*) => {
                $(if let Ok(numbers) = values.cast::<PyArray1<_>>() { Values::$kind(numbers.to_vec()?) } else)*
                { Values::Text(values.extract()?) }
            };
        }
        let values = match &self.names {
            Some(names) => {
                Values::Category { codes: values.cast::<PyArray1<u16>>()?.to_vec()?, names: names.clone() }
            }
            None => numbers!(I64, U64, U32, U16, U8, F64),
        };
        let valid = self
            .valid
            .as_ref()
            .map(|valid| valid.bind(py).cast::<PyArray1<bool>>()?.to_vec().map_err(PyErr::from));
        Ok(Column { name: self.name, values, valid: valid.transpose()? })
    }
}
