//! Blobs, and links to them.

use super::headers::{IDEMPOTENCY_KEY, IF_MATCH};
use super::operation::{answers, does, downloads_blob, inspects_blob, lists, takes, uploads_blob};
use crate::limits::{BLOB_BODY, SMALL_BODY};

routes! {
    User ListBlobs GET "/v0/blobs", BlobRead; [PROJECT, PREFIX, DELIMITER, LIMIT, CURSOR], 0,
        answers::<wire::BlobList>("List the blobs of a project");
    User DownloadBlob GET "/v0/blobs/{*path}", BlobRead; [PROJECT], 0,
        downloads_blob("Download a blob");
    User InspectBlob HEAD "/v0/blobs/{*path}", BlobRead; [PROJECT], 0,
        inspects_blob("Read the headers of a blob, without its content");
    User UploadBlob PUT "/v0/blobs/{*path}", BlobWrite; [PROJECT, EXPIRES_IN], BLOB_BODY,
        uploads_blob("Upload a blob, or replace it");
    User DeleteBlob DELETE "/v0/blobs/{*path}", BlobWrite; [PROJECT], 0,
        does("Delete a blob").reads(&[IF_MATCH]);
    User CopyBlob POST "/v0/blob-copies", BlobWrite; [PROJECT], SMALL_BODY,
        takes::<wire::CopyBlob, wire::Blob>("Copy a blob").stores();
    User MoveBlob POST "/v0/blob-moves", BlobWrite; [PROJECT], SMALL_BODY,
        takes::<wire::MoveBlob, wire::Blob>("Move a blob to another path").stores();
    User ListBlobLinks GET "/v0/blob-links", BlobRead; [PROJECT, LIMIT, CURSOR], 0,
        lists::<wire::BlobLink>("List the links to blobs");
    Session CreateBlobLink POST "/v0/blob-links"; [PROJECT], SMALL_BODY,
        takes::<wire::CreateBlobLink, wire::CreatedBlobLink>("Make a link to a blob")
            .statuses(&[201])
            .reads(&[IDEMPOTENCY_KEY]);
    User RevokeBlobLink DELETE "/v0/blob-links/{link}", BlobWrite; [], 0,
        does("Revoke a link");

    Link Download GET "/v0/linked-blobs/{secret}"; [], 0,
        downloads_blob("Download a blob by a link");
    Link Inspect HEAD "/v0/linked-blobs/{secret}"; [], 0,
        inspects_blob("Read the headers of a blob by a link");
    Link Upload PUT "/v0/linked-blobs/{secret}"; [], BLOB_BODY,
        uploads_blob("Upload a blob by a link");

    Page Blobs GET "/blobs", BlobRead; [PROJECT, PREFIX, CURSOR], 0;
    Page Blob GET "/blobs/{*path}", BlobRead; [PROJECT], 0;

    Action UploadBlob PUT "/blobs/{*path}", BlobWrite; [PROJECT, EXPIRES_IN], BLOB_BODY;
    Action DeleteBlob POST "/blob-deletions", BlobWrite; [PROJECT, PATH], SMALL_BODY;
}
