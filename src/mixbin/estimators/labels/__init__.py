"""Which labels are wrong: the parts of ``LabelCleaner``, one idea each."""
