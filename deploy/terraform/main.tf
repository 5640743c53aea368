# A container task that EventBridge Scheduler starts every night on ECS Fargate.

data "aws_region" "current" {}

locals {
  source_bucket_arn = "arn:${var.partition}:s3:::${var.source_bucket}"
  sink_bucket_arn   = "arn:${var.partition}:s3:::${var.sink_bucket}"
}

resource "aws_cloudwatch_log_group" "this" {
  name              = "/throng/${var.name}"
  retention_in_days = var.log_retention_days
  tags              = var.tags
}

resource "aws_ecs_cluster" "this" {
  name = var.name
  tags = var.tags
}

resource "aws_security_group" "this" {
  name_prefix = "${var.name}-"
  description = "Throng speaks to S3, ECR and logs, and nobody speaks to it"
  vpc_id      = var.vpc_id
  tags        = var.tags

  egress {
    description = "HTTPS"
    from_port   = 443
    to_port     = 443
    protocol    = "tcp"
    cidr_blocks = ["0.0.0.0/0"]
  }
}

resource "aws_ecs_task_definition" "this" {
  family                   = var.name
  requires_compatibilities = ["FARGATE"]
  network_mode             = "awsvpc"
  cpu                      = var.cpu
  memory                   = var.memory_gib * 1024
  execution_role_arn       = aws_iam_role.execution.arn
  task_role_arn            = aws_iam_role.task.arn
  tags                     = var.tags

  # The disk is the task's own and goes with it.
  ephemeral_storage {
    size_in_gib = var.spill_gib + 20
  }

  volume {
    name = "spill"
  }

  container_definitions = jsonencode([
    {
      name                   = "throng"
      image                  = var.image
      command                = ["run", var.job, "--json"]
      essential              = true
      readonlyRootFilesystem = true
      stopTimeout            = 60
      environment = [
        { name = "THRONG_MEMORY_LIMIT", value = "${floor(var.memory_gib * 768)}MiB" },
        { name = "THRONG_SPILL_DIR", value = "/spill" },
        { name = "THRONG_SPILL_LIMIT", value = "${var.spill_gib}GiB" },
        { name = "THRONG_LOG_FORMAT", value = "json" },
      ]
      mountPoints = [
        { sourceVolume = "spill", containerPath = "/spill", readOnly = false },
      ]
      linuxParameters = {
        capabilities       = { drop = ["ALL"] }
        initProcessEnabled = false
      }
      logConfiguration = {
        logDriver = "awslogs"
        options = {
          awslogs-group         = aws_cloudwatch_log_group.this.name
          awslogs-region        = data.aws_region.current.name
          awslogs-stream-prefix = "run"
        }
      }
    },
  ])
}

resource "aws_scheduler_schedule" "this" {
  name                         = var.name
  schedule_expression          = var.schedule
  schedule_expression_timezone = var.timezone

  flexible_time_window {
    mode = "OFF"
  }

  target {
    arn      = aws_ecs_cluster.this.arn
    role_arn = aws_iam_role.scheduler.arn

    ecs_parameters {
      task_definition_arn = aws_ecs_task_definition.this.arn
      launch_type         = "FARGATE"
      task_count          = 1

      network_configuration {
        subnets          = var.subnet_ids
        security_groups  = [aws_security_group.this.id]
        assign_public_ip = false
      }
    }

    retry_policy {
      maximum_retry_attempts       = 3
      maximum_event_age_in_seconds = 3600
    }
  }
}
