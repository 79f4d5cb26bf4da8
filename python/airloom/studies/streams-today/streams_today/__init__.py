"""What the study computes and draws."""
