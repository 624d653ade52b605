"""What is kept on disk: model files, checkpoints, compiled programs."""
