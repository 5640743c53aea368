variable "name" {
  description = "Name of the task and of everything that belongs to it"
  type        = string
  default     = "throng"
}

variable "image" {
  description = "Image that holds the job file, best by its digest"
  type        = string
}

variable "job" {
  description = "Path of the job file in the image"
  type        = string
  default     = "/jobs/job.toml"
}

variable "source_bucket" {
  description = "Bucket that is read"
  type        = string
}

variable "source_prefix" {
  description = "Prefix that is read, without slashes at its ends"
  type        = string
}

variable "sink_bucket" {
  description = "Bucket that releases are written to"
  type        = string
}

variable "sink_prefix" {
  description = "Prefix that releases are written to, without slashes at its ends"
  type        = string
}

variable "kms_key_arns" {
  description = "Keys that the two buckets are encrypted with, if they are your own"
  type        = list(string)
  default     = []
}

variable "manage_lifecycle" {
  description = "Whether the module owns the lifecycle rules of the sink's bucket; if not, add the rule of lifecycle.tf to yours"
  type        = bool
  default     = false
}

variable "schedule" {
  description = "When to run, in the form of EventBridge Scheduler"
  type        = string
  default     = "cron(30 2 * * ? *)"
}

variable "timezone" {
  description = "Time zone of the schedule"
  type        = string
  default     = "Etc/UTC"
}

variable "partition" {
  description = "Partition of AWS: aws, aws-cn or aws-us-gov"
  type        = string
  default     = "aws"
}

variable "vpc_id" {
  description = "Network to run in"
  type        = string
}

variable "subnet_ids" {
  description = "Private subnets with a way to S3, ECR and CloudWatch Logs (endpoints or NAT)"
  type        = list(string)
}

variable "cpu" {
  description = "Processor units of the task; 1024 is one core"
  type        = number
  default     = 4096
}

variable "memory_gib" {
  description = "Memory of the task in GiB; the run itself gets three quarters"
  type        = number
  default     = 8
}

variable "spill_gib" {
  description = "Disk for spill files in GiB, from 21 to 180"
  type        = number
  default     = 100

  validation {
    condition     = var.spill_gib >= 21 && var.spill_gib <= 180
    error_message = "Fargate gives a task from 21 to 200 GiB, and 20 of them are kept for the image."
  }
}

variable "log_retention_days" {
  description = "How long logs are kept"
  type        = number
  default     = 30
}

variable "tags" {
  description = "Tags of everything"
  type        = map(string)
  default     = {}
}
