//! The keywords of schemas, and the shapes of their arguments.

/// The shape of a keyword's argument.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A number of fields, elements or characters.
    Natural,
    Number,
    /// A divisor.
    Positive,
    Flag,
    /// A flag that changes the bound of the same name.
    Exclusive,
    Text,
    Pattern,
    /// One type or a list of them.
    Types,
    List,
    Names,
    Schema,
    SchemaOrFlag,
    /// One schema or a list of them.
    Items,
    /// A list of schemas.
    Schemas,
    /// Schemas by field.
    Fields,
    /// Schemas by pattern.
    Patterns,
    /// Schemas or names by field.
    Dependencies,
}

/// A keyword as a number, because comparing names takes far more code.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Keyword {
    MinLength,
    MaxLength,
    MinItems,
    MaxItems,
    MinProperties,
    MaxProperties,
    Minimum,
    Maximum,
    MultipleOf,
    UniqueItems,
    ExclusiveMinimum,
    ExclusiveMaximum,
    Title,
    Description,
    Pattern,
    Type,
    BsonType,
    Enum,
    Required,
    Not,
    AdditionalItems,
    AdditionalProperties,
    Items,
    AllOf,
    AnyOf,
    OneOf,
    Properties,
    PatternProperties,
    Dependencies,
}

static KEYWORDS: &[(&str, Keyword, Shape)] = &[
    ("minLength", Keyword::MinLength, Shape::Natural),
    ("maxLength", Keyword::MaxLength, Shape::Natural),
    ("minItems", Keyword::MinItems, Shape::Natural),
    ("maxItems", Keyword::MaxItems, Shape::Natural),
    ("minProperties", Keyword::MinProperties, Shape::Natural),
    ("maxProperties", Keyword::MaxProperties, Shape::Natural),
    ("minimum", Keyword::Minimum, Shape::Number),
    ("maximum", Keyword::Maximum, Shape::Number),
    ("multipleOf", Keyword::MultipleOf, Shape::Positive),
    ("uniqueItems", Keyword::UniqueItems, Shape::Flag),
    ("exclusiveMinimum", Keyword::ExclusiveMinimum, Shape::Exclusive),
    ("exclusiveMaximum", Keyword::ExclusiveMaximum, Shape::Exclusive),
    ("title", Keyword::Title, Shape::Text),
    ("description", Keyword::Description, Shape::Text),
    ("pattern", Keyword::Pattern, Shape::Pattern),
    ("type", Keyword::Type, Shape::Types),
    ("bsonType", Keyword::BsonType, Shape::Types),
    ("enum", Keyword::Enum, Shape::List),
    ("required", Keyword::Required, Shape::Names),
    ("not", Keyword::Not, Shape::Schema),
    ("additionalItems", Keyword::AdditionalItems, Shape::SchemaOrFlag),
    ("additionalProperties", Keyword::AdditionalProperties, Shape::SchemaOrFlag),
    ("items", Keyword::Items, Shape::Items),
    ("allOf", Keyword::AllOf, Shape::Schemas),
    ("anyOf", Keyword::AnyOf, Shape::Schemas),
    ("oneOf", Keyword::OneOf, Shape::Schemas),
    ("properties", Keyword::Properties, Shape::Fields),
    ("patternProperties", Keyword::PatternProperties, Shape::Patterns),
    ("dependencies", Keyword::Dependencies, Shape::Dependencies),
];

pub(super) fn keyword_of(name: &str) -> Option<(Keyword, Shape)> {
    KEYWORDS.iter().find(|(known, ..)| *known == name).map(|(_, keyword, shape)| (*keyword, *shape))
}
