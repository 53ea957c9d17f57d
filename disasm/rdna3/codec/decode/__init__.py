"""Words to instructions: fields, instructions, and formats that only graphics uses."""
