//! Payload groups, payloads and renders.

use bytes::Bytes;
use http::Method;
use http::header::{CONTENT_TYPE, ETAG};
use uuid::Uuid;
use wire::{
    ChangePayloadGroup, CreatePayloadGroup, Payload, PayloadGroup, PayloadGroupDetail,
    RenderPayloads, RenderedPayload,
};

use crate::call::{Answer, Call};
use crate::json_lines::{Lines, TooLong};
use crate::project::Expected;
use crate::route::Route;
use crate::{Client, Error, limits};

/// The lines of a render, as they come.
pub struct Rendered {
    answer: Answer,
    lines: Lines,
    body_ended: bool,
}

impl Client {
    pub async fn payload_groups(&self, project: Option<&str>) -> Result<Vec<PayloadGroup>, Error> {
        let route = Route::v0("payload-groups").with_some("project", project);
        self.all(&route).await
    }

    pub async fn create_payload_group(
        &self,
        request: &CreatePayloadGroup,
    ) -> Result<PayloadGroup, Error> {
        let call = self.call(Method::POST, &Route::v0("payload-groups"));
        call.json(request)?.answer().await
    }

    pub async fn payload_group(&self, id: Uuid) -> Result<PayloadGroupDetail, Error> {
        self.get(&group(id)).answer().await
    }

    pub async fn change_payload_group(
        &self,
        id: Uuid,
        request: &ChangePayloadGroup,
    ) -> Result<PayloadGroup, Error> {
        let call = self.call(Method::PATCH, &group(id));
        call.json(request)?.answer().await
    }

    pub async fn delete_payload_group(&self, id: Uuid) -> Result<(), Error> {
        self.call(Method::DELETE, &group(id)).done().await
    }

    /// The body of a version, or of the newest, with its number.
    pub async fn payload(
        &self,
        id: Uuid,
        name: &str,
        version: Option<u64>,
    ) -> Result<(u64, Bytes), Error> {
        let route = payload(id, name)?.with_some("version", version);
        let answer = self.get(&route).open().await?;
        let tag = answer.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        let version = tag.and_then(|tag| tag.trim_matches('"').parse().ok());
        let version = version.ok_or_else(|| answer.foreign())?;
        Ok((version, answer.body().await?))
    }

    /// Stores a version of a payload. Without a media type it is text.
    pub async fn store_payload(
        &self,
        id: Uuid,
        name: &str,
        body: Vec<u8>,
        media_type: &str,
        expected: Expected,
    ) -> Result<Payload, Error> {
        let call: Call<'_> = self.call(Method::PUT, &payload(id, name)?);
        let size = body.len() as u64;
        let call = call.json_bytes(body.into()).limit(limits::upload(size));
        let call = expected.header(call.header(CONTENT_TYPE, media_type)?)?;
        call.answer().await
    }

    pub async fn delete_payload(&self, id: Uuid, name: &str) -> Result<(), Error> {
        self.call(Method::DELETE, &payload(id, name)?).done().await
    }

    pub async fn render_payloads(
        &self,
        id: Uuid,
        request: &RenderPayloads,
    ) -> Result<Rendered, Error> {
        let call = self.call(Method::POST, &group(id).then("renders"));
        let answer = call.json(request)?.held().open().await?;
        Ok(Rendered {
            answer,
            lines: Lines::new(limits::RENDERED_LINE_BYTES),
            body_ended: false,
        })
    }
}

impl Rendered {
    /// The next line; none at the end.
    pub async fn next_line(&mut self) -> Result<Option<RenderedPayload>, Error> {
        let line = loop {
            match self.lines.next_line() {
                Ok(Some(line)) => break line,
                Ok(None) if self.body_ended => match self.lines.rest() {
                    Some(line) => break line,
                    None => return Ok(None),
                },
                Ok(None) => match self.answer.piece().await? {
                    Some(piece) => self.lines.push(&piece),
                    None => self.body_ended = true,
                },
                Err(TooLong) => return Err(self.protocol("a line without end".to_owned())),
            }
        };
        let line = serde_json::from_slice(&line).map(Some);
        line.map_err(|error| self.protocol(error.to_string()))
    }

    fn protocol(&self, reason: String) -> Error {
        Error::Protocol {
            operation: self.answer.operation().clone(),
            reason,
        }
    }
}

fn group(id: Uuid) -> Route {
    Route::v0("payload-groups").id(id)
}

fn payload(id: Uuid, name: &str) -> Result<Route, Error> {
    group(id).then("payloads").name(name)
}
