"""What the study's files cannot say: from tables and captures to evidence."""
