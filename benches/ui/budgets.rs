//! Figures and their budgets.

/// The exceeded budgets.
#[derive(Default)]
pub(crate) struct Budgets {
    exceeded: Vec<String>,
}

impl Budgets {
    /// Prints a figure and its budget.
    pub(crate) fn print(&mut self, what: &str, figure: f64, most: f64, unit: &str) {
        let verdict = if figure <= most { "" } else { ": EXCEEDED" };
        println!("  {what:<34} {figure:>8.2}{unit}, budget {most}{unit}{verdict}");
        if figure > most {
            self.exceeded.push(what.to_owned());
        }
    }

    /// Fails if a budget was exceeded.
    pub(crate) fn end(self) {
        if !self.exceeded.is_empty() {
            println!("exceeded: {}", self.exceeded.join(", "));
            std::process::exit(1);
        }
    }
}
