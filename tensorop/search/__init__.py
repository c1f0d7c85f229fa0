"""The search: stages that plan trials (micro, blocking, finalists, smallest), and the loop that runs a plan."""
