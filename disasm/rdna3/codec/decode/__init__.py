"""Words to instructions: the fields, the instructions, and the ones only graphics uses."""
