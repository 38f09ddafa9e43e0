//! The variables: how progress is shown, and where the page goes.

use std::ffi::OsString;

use spillproof_engine::error::Invalid;

use super::page::Page;

/// The variable that asks for progress on standard error: `1` or `auto` (a bar on a terminal, else a line for
/// each step), `json` (events, one a line), `0` or nothing (none).
pub const PROGRESS_VARIABLE: &str = "SPILLPROOF_PROGRESS";
/// The variable that names the file of the page.
pub const REPORT_VARIABLE: &str = "SPILLPROOF_REPORT";

/// How progress is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// A bar on a terminal, else lines.
    Text,
    /// JSON objects.
    Events,
}

/// What the variables ask for.
#[derive(Debug)]
pub struct Settings {
    /// Of [`PROGRESS_VARIABLE`].
    pub progress: Option<Style>,
    /// Of [`REPORT_VARIABLE`].
    pub page: Option<Page>,
}

impl Settings {
    /// The values of the variables, where `variable` gives none that is empty.
    ///
    /// # Errors
    /// [`Invalid::Setting`], with the name of the variable.
    pub fn read(variable: impl Fn(&str) -> Option<OsString>) -> Result<Self, Invalid> {
        let progress = variable(PROGRESS_VARIABLE).unwrap_or_default();
        let progress = match progress.to_str() {
            Some("1" | "auto") => Some(Style::Text),
            Some("json") => Some(Style::Events),
            Some("" | "0") => None,
            _ => {
                return Err(Invalid::Setting {
                    name: PROGRESS_VARIABLE,
                    reason: format!(
                        "`{}`: say `1` or `auto` (a bar on a terminal, else a line for each step), `json` (an event a line), or `0`",
                        progress.to_string_lossy()
                    ),
                });
            }
        };
        let page = variable(REPORT_VARIABLE)
            .map(|path| Page::new(path.as_ref()))
            .transpose()
            .map_err(|reason| Invalid::Setting {
                name: REPORT_VARIABLE,
                reason,
            })?;
        Ok(Self { progress, page })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(progress: Option<&str>, report: Option<&std::path::Path>) -> Result<Settings, Invalid> {
        Settings::read(|name| match name {
            PROGRESS_VARIABLE => progress.map(OsString::from),
            REPORT_VARIABLE => report.map(OsString::from),
            _ => None,
        })
    }

    #[test]
    fn progress_takes_its_values_and_no_others() {
        for (value, expected) in [
            (None, None),
            (Some(""), None),
            (Some("0"), None),
            (Some("1"), Some(Style::Text)),
            (Some("auto"), Some(Style::Text)),
            (Some("json"), Some(Style::Events)),
        ] {
            assert_eq!(read(value, None).unwrap().progress, expected, "{value:?}");
        }
        for value in ["yes", "JSON", "2"] {
            let refused = read(Some(value), None).unwrap_err().to_string();
            assert!(
                refused.starts_with(&format!("SPILLPROOF_PROGRESS: `{value}`: say `1`")),
                "{refused}"
            );
            assert!(refused.contains("`json`") && refused.contains("`0`"), "{refused}");
        }
    }

    #[test]
    fn a_page_that_cannot_be_written_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let page = dir.path().join("run.html");
        assert!(read(None, Some(&page)).unwrap().page.is_some());
        assert!(!page.exists(), "only looked at");
        let nowhere = dir.path().join("missing/run.html");
        for (path, words) in [(nowhere.as_path(), "does not exist"), (dir.path(), "is a folder")] {
            let refused = read(None, Some(path)).unwrap_err().to_string();
            let named = format!("SPILLPROOF_REPORT: `{}`", path.display());
            assert!(
                refused.starts_with(&named) && refused.contains(words),
                "{refused}"
            );
        }
        assert!(!dir.path().join("missing").exists());
    }
}
