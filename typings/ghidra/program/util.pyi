from ghidra.program.model.lang import Language, LanguageID

class LanguageService:
    def getLanguage(self, language: LanguageID) -> Language: ...

class DefaultLanguageService:
    @staticmethod
    def getLanguageService() -> LanguageService: ...
