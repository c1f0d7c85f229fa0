"""The search: stages that plan trials (micro, blocking, large, smallest), and the loop that runs a plan."""
