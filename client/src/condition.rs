//! Open conditions.

use http::Method;
use wire::{Acknowledge, OpenCondition, Silence};

use crate::route::Route;
use crate::{Client, Error};

impl Client {
    pub async fn conditions(&self) -> Result<Vec<OpenCondition>, Error> {
        self.all(&Route::v0("conditions")).await
    }

    /// Notes that a person knows of a condition: `POST /conditions/{condition}/acknowledge`.
    pub async fn acknowledge_condition(
        &self,
        condition: &str,
        request: &Acknowledge,
    ) -> Result<OpenCondition, Error> {
        let route = Route::v0("conditions").name(condition)?.then("acknowledge");
        let call = self.call(Method::POST, &route).json(request)?;
        call.answer().await
    }

    /// Folds a condition away for a while: `POST /conditions/{condition}/silence`.
    pub async fn silence_condition(
        &self,
        condition: &str,
        request: &Silence,
    ) -> Result<OpenCondition, Error> {
        let route = Route::v0("conditions").name(condition)?.then("silence");
        let call = self.call(Method::POST, &route).json(request)?;
        call.answer().await
    }
}
