//! Implements the library's traits for our own types.

/// Implements `Val` and `Indexer` for a type. The type's method `at` reads a member. Further methods of `Val` are in braces.
macro_rules! cel_value {
    ($value:ty, $name:ident { $($methods:tt)* }) => {
        impl ::cel_interpreter::common::value::Val for $value {
            fn get_type(&self) -> &::cel_interpreter::common::types::Type {
                &$name
            }

            fn cel_type() -> &'static ::cel_interpreter::common::types::Type {
                &$name
            }

            fn as_indexer<'b, 'v>(
                &'b self,
            ) -> Option<&'b (dyn ::cel_interpreter::common::traits::Indexer + 'v)>
            where
                Self: 'v,
            {
                Some(self)
            }

            fn into_indexer<'v>(
                self: Box<Self>,
            ) -> Option<Box<dyn ::cel_interpreter::common::traits::Indexer + 'v>>
            where
                Self: 'v,
            {
                Some(self)
            }

            fn clone_as_boxed<'v>(
                &self,
            ) -> Box<dyn ::cel_interpreter::common::value::Val + 'v> {
                Box::new(self.clone())
            }

            fn as_any(&self) -> Option<&dyn std::any::Any> {
                Some(self)
            }

            $($methods)*
        }

        impl ::cel_interpreter::common::value::StaticVal for $value {}

        impl ::cel_interpreter::common::traits::Indexer for $value {
            fn get<'b, 'v>(
                &'b self,
                index: &dyn ::cel_interpreter::common::value::Val,
            ) -> Result<CowVal<'b, 'v>, ExecutionError>
            where
                Self: 'v,
            {
                self.at(index)
            }

            fn steal<'v>(
                self: Box<Self>,
                index: &dyn ::cel_interpreter::common::value::Val,
            ) -> Result<Box<dyn ::cel_interpreter::common::value::Val + 'v>, ExecutionError>
            where
                Self: 'v,
            {
                Ok(self.at(index)?.into_owned())
            }
        }
    };
}

pub(super) use cel_value;
