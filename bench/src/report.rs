//! Figures, what they should be, where they were measured, and how they are
//! printed.

use crate::measure::Comparison;
use serde::Serialize;
use std::fmt;
use std::fs;
use time::OffsetDateTime;

/// What one run measured, and on what.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    /// Where and when.
    pub(crate) environment: Environment,
    /// The figures, in the order of measurement.
    pub(crate) figures: Vec<Figure>,
    /// Curves; in JSON only.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) series: Vec<Series>,
}

/// Something measured over time, or over what its name says.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Series {
    /// What was measured.
    pub(crate) name: String,
    /// Unit of the values.
    pub(crate) unit: &'static str,
    /// Seconds since the start, or that other number, and the value then.
    pub(crate) points: Vec<[f64; 2]>,
}

/// What a figure depends on beside the code.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Environment {
    /// Date, UTC.
    pub(crate) date: String,
    /// Model of the processor.
    pub(crate) processor: String,
    /// Processors that this process may use.
    pub(crate) processors: usize,
    /// Runnable tasks per processor in the last minute before.
    pub(crate) load: Option<f64>,
    /// Kernel.
    pub(crate) kernel: String,
    /// Our version, and those of the libraries that the figures depend on.
    pub(crate) versions: Vec<(String, String)>,
    /// Whether the program was built with optimisation.
    pub(crate) optimised: bool,
}

/// One measured number.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Figure {
    /// Which part of the system.
    pub(crate) group: &'static str,
    /// What was measured.
    pub(crate) name: String,
    /// Unit of `ours` and `floor`.
    pub(crate) unit: &'static str,
    /// What ours takes or does.
    pub(crate) ours: f64,
    /// What the floor takes or does, where there is one.
    pub(crate) floor: Option<f64>,
    /// Ours over floor; the median over neighbouring samples.
    pub(crate) ratio: Option<f64>,
    /// What the paper reports of the same, where it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) paper: Option<f64>,
    /// What it should be.
    pub(crate) goal: Option<Goal>,
    /// Whether it is.
    pub(crate) met: Option<bool>,
}

/// What a figure should be.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Goal {
    /// Ours over floor.
    RatioAtMost(f64),
    /// Ours.
    AtMost(f64),
    /// Ours.
    AtLeast(f64),
}

impl Figure {
    /// Ours beside a floor.
    #[must_use]
    pub(crate) fn compared(
        group: &'static str,
        name: String,
        unit: &'static str,
        compared: Comparison,
    ) -> Figure {
        let Comparison { floor, ours, ratio } = compared;
        Figure {
            group,
            name,
            unit,
            ours,
            floor: Some(floor),
            ratio: Some(ratio),
            paper: None,
            goal: None,
            met: None,
        }
    }

    /// A number that stands alone.
    #[must_use]
    pub(crate) fn alone(
        group: &'static str,
        name: String,
        unit: &'static str,
        ours: f64,
    ) -> Figure {
        let (floor, ratio, paper, goal, met) = (None, None, None, None, None);
        Figure { group, name, unit, ours, floor, ratio, paper, goal, met }
    }

    /// With what the paper reports, in the same unit.
    #[must_use]
    pub(crate) fn beside_paper(self, paper: f64) -> Figure {
        Figure { paper: Some(paper), ..self }
    }

    /// Says what it should be, and finds whether it is.
    #[must_use]
    pub(crate) fn with_goal(mut self, goal: Goal) -> Figure {
        self.met = Some(match goal {
            Goal::RatioAtMost(most) => self.ratio.is_some_and(|ratio| ratio <= most),
            Goal::AtMost(most) => self.ours <= most,
            Goal::AtLeast(least) => self.ours >= least,
        });
        self.goal = Some(goal);
        self
    }
}

impl Report {
    /// The figures as comma-separated values.
    #[must_use]
    pub(crate) fn to_csv(&self) -> String {
        let optional =
            |value: Option<f64>| value.map(|value| value.to_string()).unwrap_or_default();
        let line = |it: &Figure| {
            let met = it.met.map_or("", |met| if met { "yes" } else { "no" });
            let [floor, ratio, paper] = [it.floor, it.ratio, it.paper].map(optional);
            let named = format!("\"{}\",\"{}\",{}", it.group, it.name, it.unit);
            format!("{named},{},{floor},{ratio},{paper},{met}\n", it.ours)
        };
        let lines: String = self.figures.iter().map(line).collect();
        format!("group,name,unit,ours,floor,ratio,paper,met\n{lines}")
    }
}

impl Environment {
    /// Of this machine, now.
    #[must_use]
    pub(crate) fn here() -> Environment {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let read = |path| fs::read_to_string(path).unwrap_or_default();
        let load = read("/proc/loadavg");
        let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok());
        let model = read("/proc/cpuinfo");
        let model =
            model.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        Environment {
            date: OffsetDateTime::now_utc().date().to_string(),
            processor: model.map_or_else(|| "unknown".into(), |(_, model)| model.to_owned()),
            processors,
            load: load.map(|load| load / processors as f64),
            kernel: read("/proc/sys/kernel/osrelease").trim().to_owned(),
            versions: versions(),
            optimised: !cfg!(debug_assertions),
        }
    }
}

/// As the lock file says that this program was built.
fn versions() -> Vec<(String, String)> {
    let locked = include_str!("../../Cargo.lock");
    let version = |name: &str| {
        let entry = format!("name = \"{name}\"\nversion = \"");
        let (_, rest) = locked.split_once(&entry)?;
        Some((name.to_owned(), rest.split('"').next()?.to_owned()))
    };
    ["alpheus", "aes", "sha2", "fjall"].into_iter().filter_map(version).collect()
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Environment { date, processor, processors, load, kernel, versions, optimised } =
            &self.environment;
        write!(f, "{date}, {processor}, {processors} processors")?;
        if let Some(load) = load {
            write!(f, " with {load:.1} tasks each")?;
        }
        write!(f, ", Linux {kernel}")?;
        versions.iter().try_for_each(|(name, version)| write!(f, ", {name} {version}"))?;
        writeln!(f, "{}", if *optimised { "" } else { "; NOT OPTIMISED: figures mean nothing" })?;
        let (mut group, paper) = ("", self.figures.iter().any(|figure| figure.paper.is_some()));
        for figure in &self.figures {
            if figure.group != group {
                group = figure.group;
                let paper = if paper { "       paper" } else { "" };
                writeln!(
                    f,
                    "\n{group:<76}{:>12}{:>12}{:>7}{paper}  goal",
                    "ours", "floor", "ratio"
                )?;
            }
            writeln!(f, "{}", figure.line(paper))?;
        }
        Ok(())
    }
}

impl Figure {
    /// A line of a table, which may have a column of the paper's.
    fn line(&self, paper: bool) -> String {
        let number = |value: f64| match value {
            value if value >= 1_000.0 => format!("{value:.0}"),
            value if value >= 10.0 || value == 0.0 => format!("{value:.1}"),
            value => format!("{value:.3}"),
        };
        let optional = |value: Option<f64>| value.map(number).unwrap_or_default();
        let ratio = self.ratio.map(|ratio| format!("{ratio:.2}")).unwrap_or_default();
        let named = format!("{} ({})", self.name, self.unit);
        let (ours, floor) = (number(self.ours), optional(self.floor));
        let theirs = if paper { format!("{:>12}", optional(self.paper)) } else { String::new() };
        let line = format!("{named:<76}{ours:>12}{floor:>12}{ratio:>7}{theirs}");
        let Some(goal) = self.goal else { return line };
        let met = if self.met == Some(true) { "met" } else { "NOT MET" };
        match goal {
            Goal::RatioAtMost(most) => format!("{line}  ≤ {most}x {met}"),
            Goal::AtMost(most) => format!("{line}  ≤ {} {met}", number(most)),
            Goal::AtLeast(least) => format!("{line}  ≥ {} {met}", number(least)),
        }
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(false))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_goal_is_met_or_not() {
        let compared = Comparison { floor: 10.0, ours: 16.0, ratio: 1.6 };
        let figure = Figure::compared("group", "name".into(), "ns", compared);
        assert_eq!(figure.clone().with_goal(Goal::RatioAtMost(1.5)).met, Some(false));
        assert_eq!(figure.clone().with_goal(Goal::RatioAtMost(2.0)).met, Some(true));
        assert_eq!(figure.clone().with_goal(Goal::AtLeast(16.0)).met, Some(true));
        let shown = figure.with_goal(Goal::AtMost(15.0)).to_string();
        assert!(shown.ends_with("1.60  ≤ 15.0 NOT MET"), "{shown}");
    }

    /// A column of the paper's stands where a figure of the report has one.
    #[test]
    fn the_paper_has_a_column_where_it_says_something() {
        let figure = |name: &str| Figure::alone("group", name.into(), "ns", 1.0);
        let (bare, beside) = (figure("a"), figure("b").beside_paper(1234.0));
        let environment = Environment::here();
        let report = Report { environment, figures: vec![bare, beside], series: Vec::new() };
        let shown = report.to_string();
        assert!(
            shown.contains("ratio       paper  goal") && shown.contains("        1234"),
            "{shown}"
        );
        assert!(report.to_csv().ends_with("\"b\",ns,1,,,1234,\n"), "{}", report.to_csv());
        let json = serde_json::to_string(&report.figures).unwrap();
        assert_eq!(json.matches("paper").count(), 1, "{json}");
    }

    #[test]
    fn versions_are_found_in_the_lock_file() {
        assert!(versions().iter().any(|(name, version)| name == "aes" && !version.is_empty()));
    }
}
