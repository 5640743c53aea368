output "cluster_arn" {
  description = "Cluster that tasks run in"
  value       = aws_ecs_cluster.this.arn
}

output "task_definition_arn" {
  description = "The task, for a start by hand"
  value       = aws_ecs_task_definition.this.arn
}

output "security_group_id" {
  description = "Security group of tasks"
  value       = aws_security_group.this.id
}

output "task_role_arn" {
  description = "Role that bucket policies may name"
  value       = aws_iam_role.task.arn
}

output "log_group" {
  description = "Where logs and manifests of runs are"
  value       = aws_cloudwatch_log_group.this.name
}
