# Parts of uploads that a killed task could not abort are not listed, but paid for. A bucket has one lifecycle
# configuration: set manage_lifecycle only when nobody else keeps rules on it.

resource "aws_s3_bucket_lifecycle_configuration" "sink" {
  count  = var.manage_lifecycle ? 1 : 0
  bucket = var.sink_bucket

  rule {
    id     = "${var.name}-abort-uploads"
    status = "Enabled"

    filter {
      prefix = "${var.sink_prefix}/"
    }

    abort_incomplete_multipart_upload {
      days_after_initiation = 1
    }
  }
}
